"""The operators of the algebra, by family: each class has its fields, the checks of its constructor, and its facts."""

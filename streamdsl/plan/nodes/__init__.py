"""The operators of the algebra, by family: a file states for each operator its fields, what is ill-formed, and its facts."""

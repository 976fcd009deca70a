"""Window sequences (paper 003): their descriptions, by name or by functions, and the windows that they make of what was seen."""

"""streamdsl."""

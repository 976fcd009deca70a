"""The peers: how each is handed its input, asked, and read. Packages are imported when a way is prepared, not before."""

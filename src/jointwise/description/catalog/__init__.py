"""The built-in robots: one TOML file each, with the source of every group of numbers."""

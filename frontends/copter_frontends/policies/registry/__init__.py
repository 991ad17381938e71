"""All policies by name, with their constructors and options. Only the command line imports this package."""

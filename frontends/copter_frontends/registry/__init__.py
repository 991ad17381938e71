"""Every policy by its name: how it is made and which options it takes. Only the command line imports this."""

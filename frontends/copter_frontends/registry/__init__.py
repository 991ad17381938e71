"""Every policy by its name: how it is made and what it may be told. Only the command line stands above."""

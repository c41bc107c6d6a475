"""The topic contract: names, quality of service, and checks of what arrives."""

"""What is measured: a module or a package for each question, with a command of its own."""

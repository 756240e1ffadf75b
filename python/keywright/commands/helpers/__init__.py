"""What the files of commands call: arguments, inputs, folders, programs with their keys, pictures."""

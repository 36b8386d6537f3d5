"""PTX: declarations of the instruction set, tree, reader, printer, checker."""

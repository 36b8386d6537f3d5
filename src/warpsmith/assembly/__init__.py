"""The two languages of the GPU, PTX and SASS: tables, readers, printers, checkers."""

"""SASS: tables of instruction forms derived by probing the disassembler, decoder, encoder. Standard library only."""

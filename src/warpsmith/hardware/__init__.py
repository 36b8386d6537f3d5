"""What needs both sides: capturing from the GPU, replaying what was captured, the simulator against the GPU."""

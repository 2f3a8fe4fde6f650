"""How often goals that were certified on a sample hold on its population."""

"""How often rules that are proven miss a goal, and what a proof costs beside MAPIE's."""

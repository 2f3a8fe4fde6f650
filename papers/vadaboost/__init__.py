"""VadaBoost and its relatives: Shivaswamy and Jebara 2011."""

"""DRO-Boosting: Blanchet, Zhang, Kang and Hu."""

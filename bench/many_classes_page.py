def write_page(folder, rows): pass

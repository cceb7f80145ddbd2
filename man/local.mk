# Manual pages.

dist_man_MANS +=

# Programs for readers, which are installed as sources. Their tests are in test/examples/.

examplesdir = $(docdir)/examples
dist_examples_DATA = \
	docs/examples/README \
	docs/examples/datagram.c \
	docs/examples/echo_client.c \
	docs/examples/echo_server.c \
	docs/examples/ia.py \
	docs/examples/table.c
nodist_examples_DATA = docs/examples/hello.c
CLEANFILES += docs/examples/hello.c

docs/examples/hello.c: man/man7/dat.7 test/examples/extract
	$(AM_V_GEN)$(MKDIR_P) docs/examples && \
	$(SHELL) $(top_srcdir)/test/examples/extract $(top_srcdir)/man/man7/dat.7 >$@.tmp && mv $@.tmp $@

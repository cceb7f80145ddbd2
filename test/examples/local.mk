# The manual pages' examples, run over a connection for both API versions; and their commands and
# dat.conf lines.

examples_sources = \
	test/examples/common.c \
	test/examples/connect.c \
	test/examples/data.c \
	test/examples/event.c \
	test/examples/examples.h \
	test/examples/ia.c

examples_programs = test/examples/examples1 test/examples/examples2
check_PROGRAMS += $(examples_programs)
CONFORM_TESTS += $(examples_programs)
UTIL_TESTS += test/examples/commands.sh test/examples/standard.sh
LIBFABRIC_TESTS += test/examples/commands.sh

# An example must compile with more warnings than the build may enable, and each of its functions
# must be called.
examples_cflags = $(AM_CFLAGS) -Wall -Wextra -Werror

test_examples_examples1_SOURCES = $(examples_sources)
test_examples_examples1_CPPFLAGS = $(pair_cppflags1) -Itest/examples
test_examples_examples1_CFLAGS = $(examples_cflags)
test_examples_examples1_LDADD = $(conform_ldadd1)
test_examples_examples2_SOURCES = $(examples_sources)
test_examples_examples2_CPPFLAGS = $(pair_cppflags2) -Itest/examples
test_examples_examples2_CFLAGS = $(examples_cflags)
test_examples_examples2_LDADD = $(conform_ldadd2)

# The program in dat(7), with which two processes talk.
hello_programs = test/examples/hello1 test/examples/hello2
check_PROGRAMS += $(hello_programs)
CONFORM_TESTS += test/examples/hello.sh
test_examples_hello1_SOURCES = test/examples/hello.c
test_examples_hello1_CPPFLAGS = $(pair_cppflags1) -Itest/examples
test_examples_hello1_CFLAGS = $(examples_cflags)
test_examples_hello1_LDADD = libdat.la
test_examples_hello2_SOURCES = test/examples/hello.c
test_examples_hello2_CPPFLAGS = $(pair_cppflags2) -Itest/examples
test_examples_hello2_CFLAGS = $(examples_cflags)
test_examples_hello2_LDADD = libdat2.la

# The programs in docs/examples, without hello.c, which is the program in dat(7).
installed_programs = test/examples/datagram test/examples/echo_client test/examples/echo_server \
	test/examples/table
check_PROGRAMS += $(installed_programs)
CONFORM_TESTS += test/examples/datagram.sh test/examples/installed.sh
test_examples_datagram_SOURCES = docs/examples/datagram.c
test_examples_datagram_CPPFLAGS = $(pair_cppflags2)
test_examples_datagram_CFLAGS = $(examples_cflags)
test_examples_datagram_LDADD = libdat2.la
test_examples_echo_client_SOURCES = docs/examples/echo_client.c
test_examples_echo_client_CPPFLAGS = $(pair_cppflags2)
test_examples_echo_client_CFLAGS = $(examples_cflags)
test_examples_echo_client_LDADD = libdat2.la
test_examples_echo_server_SOURCES = docs/examples/echo_server.c
test_examples_echo_server_CPPFLAGS = $(pair_cppflags2)
test_examples_echo_server_CFLAGS = $(examples_cflags)
test_examples_echo_server_LDADD = libdat2.la
test_examples_table_SOURCES = docs/examples/table.c
test_examples_table_CPPFLAGS = $(pair_cppflags2)
test_examples_table_CFLAGS = $(examples_cflags)
test_examples_table_LDADD = libdat2.la

# The program in README.md.
check_PROGRAMS += test/examples/readme
CONFORM_TESTS += test/examples/readme.sh
nodist_test_examples_readme_SOURCES = test/examples/readme.c
test_examples_readme_CPPFLAGS = $(pair_cppflags2)
test_examples_readme_CFLAGS = $(examples_cflags)
test_examples_readme_LDADD = libdat2.la

test/examples/readme.c: README.md
	$(AM_V_GEN)$(MKDIR_P) test/examples && \
	awk '/^```$$/ { inside = 0 } inside { print } /^```c$$/ { inside = 1 }' \
		$(top_srcdir)/README.md >$@

MOSTLYCLEANFILES += test/examples/readme.c

$(test_examples_hello1_OBJECTS) $(test_examples_hello2_OBJECTS) \
$(test_examples_examples1_OBJECTS) $(test_examples_examples2_OBJECTS): test/examples/pages/stamp

test/examples/pages/stamp: $(dist_man_MANS) test/examples/extract
	$(AM_V_GEN)$(MKDIR_P) test/examples/pages && rm -f test/examples/pages/* && \
	$(SHELL) $(top_srcdir)/test/examples/extract -d test/examples/pages \
		$(top_srcdir)/man/man3/*.3 $(top_srcdir)/man/man7/dat.7 && touch $@

MOSTLYCLEANFILES += test/examples/pages/*

EXTRA_DIST += \
	test/examples/commands.sh \
	test/examples/datagram.sh \
	test/examples/extract \
	test/examples/hello.sh \
	test/examples/installed.sh \
	test/examples/readme.sh \
	test/examples/standard.sh

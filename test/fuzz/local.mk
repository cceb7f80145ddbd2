# Parsers of peers' messages, fed with any bytes: "make fuzz" runs libFuzzer for a while, and
# "make check" runs each target with its seeds, which needs no clang. Also two live processes with
# a proxy between them that changes their CM messages; "make fuzz" runs these for a while, too.

FUZZ_SECONDS = 60
FUZZ_CC = clang
fuzz_run = top_srcdir='$(top_srcdir)' FUZZ_SECONDS='$(FUZZ_SECONDS)' FUZZ_CC='$(FUZZ_CC)' \
	$(SHELL) $(top_srcdir)/test/fuzz/run

# A target: its name and its line here, its program below, and its seeds.
fuzz_parsers = fuzz-rdm_frame fuzz-cm_wire fuzz-wire fuzz-ud_frame
fuzz_live = fuzz-live-shm fuzz-live-rxm fuzz-live-local
fuzz: fuzz-parsers fuzz-live
fuzz-parsers: $(fuzz_parsers)
fuzz-live: $(fuzz_live)
fuzz-rdm_frame:
	$(fuzz_run) rdm_frame prov/ofi/xport/rdm/frame.c
fuzz-cm_wire:
	$(fuzz_run) cm_wire prov/ofi/xport/cm/wire.c
fuzz-wire:
	$(fuzz_run) wire prov/ofi/xport/wire.c
fuzz-ud_frame:
	$(fuzz_run) ud_frame prov/ofi/xport/ud/frame.c

$(fuzz_live): all test/fuzz/live2
	$(AM_TESTS_ENVIRONMENT) FUZZ_SECONDS='$(FUZZ_SECONDS)' \
		$(SHELL) $(top_srcdir)/test/fuzz/live.sh $(@:fuzz-live-%=%)

.PHONY: fuzz fuzz-parsers fuzz-live $(fuzz_parsers) $(fuzz_live)

fuzz_replays = \
	test/fuzz/rdm_frame_replay \
	test/fuzz/cm_wire_replay \
	test/fuzz/wire_replay \
	test/fuzz/ud_frame_replay
check_PROGRAMS += $(fuzz_replays)
PROV_UNIT_TESTS += $(fuzz_replays)

fuzz_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/prov/ofi

test_fuzz_rdm_frame_replay_SOURCES = \
	test/fuzz/fuzz.h \
	test/fuzz/rdm_frame_fuzz.c \
	test/fuzz/replay.c
test_fuzz_rdm_frame_replay_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_SEEDS='"rdm_frame"'
test_fuzz_rdm_frame_replay_LDADD = libdofi2.la

test_fuzz_cm_wire_replay_SOURCES = \
	test/fuzz/fuzz.h \
	test/fuzz/replay.c \
	test/fuzz/cm_wire_fuzz.c
test_fuzz_cm_wire_replay_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_SEEDS='"cm_wire"'
test_fuzz_cm_wire_replay_LDADD = libdofi2.la

test_fuzz_wire_replay_SOURCES = \
	test/fuzz/fuzz.h \
	test/fuzz/replay.c \
	test/fuzz/wire_fuzz.c
test_fuzz_wire_replay_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_SEEDS='"wire"'
test_fuzz_wire_replay_LDADD = libdofi2.la

test_fuzz_ud_frame_replay_SOURCES = \
	test/fuzz/fuzz.h \
	test/fuzz/replay.c \
	test/fuzz/ud_frame_fuzz.c
test_fuzz_ud_frame_replay_CPPFLAGS = $(fuzz_cppflags) -DFUZZ_SEEDS='"ud_frame"'
test_fuzz_ud_frame_replay_LDADD = libdofi2.la

check_PROGRAMS += test/fuzz/live2
PAIR_TESTS += test/fuzz/live.sh
test_fuzz_live2_SOURCES = \
	prov/ofi/xport/cm/wire.c \
	test/fuzz/fuzz.h \
	test/fuzz/live.c \
	test/fuzz/proxy.c \
	test/fuzz/proxy.h
test_fuzz_live2_CPPFLAGS = $(pair_cppflags2) -I$(top_srcdir)/prov/ofi
test_fuzz_live2_LDADD = $(pair_ldadd2)

EXTRA_DIST += \
	test/fuzz/live.sh \
	test/fuzz/run \
	test/fuzz/seeds

.PHONY: clean-fuzz
clean-local: clean-fuzz
clean-fuzz:
	rm -rf test/fuzz/found test/fuzz/corpus test/fuzz/*_fuzz test/fuzz/*.log

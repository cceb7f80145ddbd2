# Documents for developers, and the programs that they describe.

EXTRA_DIST += \
	docs/architecture.md \
	docs/design.md \
	docs/glossary.md \
	docs/libfabric-defects.md \
	docs/libfabric-defects/check.sh \
	docs/libfabric-defects/run \
	docs/locking.md \
	docs/migrating.md \
	docs/progress.md \
	docs/fabrics.md \
	docs/scale.md \
	docs/testing.md

ABI_TESTS += docs/libfabric-defects/check.sh

# The reproductions of libfabric's defects, in the order of the document.
libfabric_defects = \
	docs/libfabric-defects/shm_death_in_send.c \
	docs/libfabric-defects/shm_reuse_after_death.c \
	docs/libfabric-defects/shm_remove_closed.c \
	docs/libfabric-defects/shm_remove_unanswered.c \
	docs/libfabric-defects/shm_insert_dead.c \
	docs/libfabric-defects/shm_overlong.c \
	docs/libfabric-defects/shm_keys.c \
	docs/libfabric-defects/shm_bad_read.c \
	docs/libfabric-defects/shm_signals.c \
	docs/libfabric-defects/shm_negative_error.c \
	docs/libfabric-defects/tcp_header.c \
	docs/libfabric-defects/tcp_bounds.c \
	docs/libfabric-defects/tcp_stranger.c \
	docs/libfabric-defects/tcp_accept_data.c \
	docs/libfabric-defects/tcp_send_error.c \
	docs/libfabric-defects/tcp_read_fault.c \
	docs/libfabric-defects/tcp_eq_wakeups.c \
	docs/libfabric-defects/tcp_empty_receive.c \
	docs/libfabric-defects/tcp_short_request.c \
	docs/libfabric-defects/tcp_refused_write.c \
	docs/libfabric-defects/tcp_blind.c \
	docs/libfabric-defects/tcp_reject_late.c \
	docs/libfabric-defects/tcp_connected_length.c \
	docs/libfabric-defects/tcp_default_flags.c \
	docs/libfabric-defects/tcp_early.c \
	docs/libfabric-defects/tcp_reset.c \
	docs/libfabric-defects/rxm_lost_sends.c \
	docs/libfabric-defects/rxm_two_receives.c \
	docs/libfabric-defects/rxd_bad_write.c \
	docs/libfabric-defects/sockets_double_close.c \
	docs/libfabric-defects/sockets_info_kept.c \
	docs/libfabric-defects/sockets_lost_mark.c \
	docs/libfabric-defects/sockets_port_taken.c \
	docs/libfabric-defects/sockets_stranger.c \
	docs/libfabric-defects/shm_no_space.c \
	docs/libfabric-defects/tcp_zerocopy.c \
	docs/libfabric-defects/rxm_missing_interface.c \
	docs/libfabric-defects/getinfo_nomem.c \
	docs/libfabric-defects/tcp_second_store.c \
	docs/libfabric-defects/tcp_readable.c \
	docs/libfabric-defects/tcp_cut_read.c

EXTRA_DIST += $(libfabric_defects) docs/libfabric-defects/defect.h docs/libfabric-defects/version.c
CLEANFILES += $(libfabric_defects:.c=) docs/libfabric-defects/version

# Builds and runs the reproductions, and prints which defects the libfabric in use has. They may
# crash or hang, so no check runs them; a defect that shows is no failure.
defects:
	@$(MKDIR_P) docs/libfabric-defects
	@for source in docs/libfabric-defects/version.c $(libfabric_defects); do \
		$(CC) -g -O1 -D_GNU_SOURCE $(LIBFABRIC_CFLAGS) -o $${source%.c} \
			$(top_srcdir)/$$source $(LIBFABRIC_LIBS) || exit; \
	done
	@names=; for source in $(libfabric_defects); do \
		name=$${source%.c}; names="$$names $${name##*/}"; \
	done; \
	$(SHELL) $(top_srcdir)/docs/libfabric-defects/run docs/libfabric-defects $$names

.PHONY: defects

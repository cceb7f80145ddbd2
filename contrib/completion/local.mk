# bash completion of the programs: one file, under the name of each.

bashcompletiondir = $(datadir)/bash-completion/completions
nodist_bashcompletion_DATA = contrib/completion/datinfo
completion_links = datinfo1 datperf datperf1

EXTRA_DIST += contrib/completion/dat.bash.in test/unit/util/completion.sh
CLEANFILES += contrib/completion/datinfo
UTIL_TESTS += test/unit/util/completion.sh

contrib/completion/datinfo: contrib/completion/dat.bash.in Makefile
	$(AM_V_GEN)$(MKDIR_P) contrib/completion && \
	$(SED) 's|@sysconfdir[@]|$(sysconfdir)|' $(srcdir)/contrib/completion/dat.bash.in >$@.tmp && \
	mv $@.tmp $@

install-completion-hook:
	cd "$(DESTDIR)$(bashcompletiondir)" && for name in $(completion_links); do \
		$(LN_S) -f datinfo $$name || exit; \
	done

uninstall-completion-hook:
	cd "$(DESTDIR)$(bashcompletiondir)" 2>/dev/null || exit 0; rm -f $(completion_links)

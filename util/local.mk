# datinfo and datperf, each built for both API versions from one source.

bin_PROGRAMS += util/datinfo util/datinfo1 util/datperf util/datperf1

# Files that use no DAT type are compiled once, for the programs and their tests.
noinst_LTLIBRARIES += util/libutil.la
util_libutil_la_SOURCES = \
	util/datperf.h \
	util/info_wrap.c \
	util/info_wrap.h \
	util/json.c \
	util/json.h \
	util/perf.h \
	util/perf_host.c \
	util/perf_host.h \
	util/perf_loop.c \
	util/perf_loop.h \
	util/perf_mpi.c \
	util/perf_measure.c \
	util/perf_measure.h \
	util/perf_oob.c \
	util/perf_oob.h \
	util/perf_opts.c \
	util/perf_out.c \
	util/perf_out_data.c \
	util/perf_peers.h \
	util/perf_peers_out.c \
	util/perf_plot.c \
	util/perf_plot.h \
	util/perf_plot_script.c \
	util/perf_progress.c \
	util/perf_run.c \
	util/perf_samples.c \
	util/perf_samples.h \
	util/perf_stat.c \
	util/perf_stat.h \
	util/perf_table.c \
	util/perf_table.h \
	util/perf_stop.c \
	util/perf_stop.h \
	util/perf_ud.c \
	util/perf_ud.h \
	util/perf_ud_loop.c \
	util/perf_ud_loop.h \
	util/perf_wire.c \
	util/perf_wire.h \
	util/perf_xport.c
util_libutil_la_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
util_libutil_la_LIBADD = $(JSONC_LIBS) -lm
# Only datperf --from reads JSON.
if HAVE_JSONC
util_libutil_la_SOURCES += util/perf_plot_json.c
else
util_libutil_la_SOURCES += util/perf_plot_none.c
endif

datinfo_files = \
	src/conf.c \
	util/dat_text.c \
	util/dat_text.h \
	util/datinfo.c \
	util/info_attr.c \
	util/info_attr.h \
	util/info_caps.c \
	util/info_caps.h \
	util/info_checks.c \
	util/info_checks.h \
	util/info_child.c \
	util/info_child.h \
	util/info_conf.c \
	util/info_conf.h \
	util/info_conf_append.c \
	util/info_conf_append.h \
	util/info_count.c \
	util/info_count.h \
	util/info_doctor.c \
	util/info_doctor.h \
	util/info_explain.c \
	util/info_explain.h \
	util/info_fix.c \
	util/info_fix.h \
	util/info_libfabric.c \
	util/info_libfabric.h \
	util/info_list.c \
	util/info_list.h \
	util/info_loop.c \
	util/info_loop.h \
	util/info_path.c \
	util/info_path.h \
	util/info_registry.c \
	util/info_registry.h \
	util/info_settings.c \
	util/info_settings.h \
	util/info_values.c \
	util/info_values.h \
	util/log_lines.c \
	util/log_lines.h \
	util/open_reason.c \
	util/open_reason.h \
	util/perf_dat.c \
	util/perf_dat.h \
	util/perf_dat_cm.c \
	util/perf_dat_io.c

datperf_files = \
	util/dat_text.c \
	util/dat_text.h \
	util/datperf.c \
	util/datperf.h \
	util/log_lines.c \
	util/log_lines.h \
	util/open_reason.c \
	util/open_reason.h \
	util/perf.h \
	util/perf_client.c \
	util/perf_dat.c \
	util/perf_dat.h \
	util/perf_dat_cm.c \
	util/perf_dat_io.c \
	util/perf_hosts.c \
	util/perf_hosts.h \
	util/perf_peers.c \
	util/perf_peers.h \
	util/perf_peers_dat.c \
	util/perf_raw.c \
	util/perf_raw.h \
	util/perf_raw_io.c \
	util/perf_raw_msg.c \
	util/perf_raw_rdm.c \
	util/perf_raw_ud.c \
	util/perf_server.c \
	util/perf_ssh.c \
	util/perf_ssh.h

datinfo_cppflags = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS) -I$(top_srcdir)/src \
	-DPROVIDER_DIR='"$(libdir)"' -DDAT_CONFDIR='"$(sysconfdir)"'
if HAVE_HWLOC
datinfo_cppflags += -DUSES_HWLOC
endif

util_datinfo_SOURCES = $(datinfo_files) util/perf_dat_ext.c util/perf_dat_ud.c
util_datinfo_CPPFLAGS = -DDAT_API=2 $(datinfo_cppflags)
util_datinfo_LDADD = util/libutil.la libdat2.la -lm
util_datinfo1_SOURCES = $(datinfo_files)
util_datinfo1_CPPFLAGS = -DDAT_API=1 $(datinfo_cppflags)
util_datinfo1_LDADD = util/libutil.la libdat.la -lm

# Only --raw needs libfabric.
util_datperf_SOURCES = $(datperf_files) util/perf_dat_ext.c util/perf_dat_ud.c
util_datperf_CPPFLAGS = -DDAT_API=2 $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS)
util_datperf_LDADD = util/libutil.la libdat2.la $(LIBFABRIC_LIBS) -lm
util_datperf1_SOURCES = $(datperf_files)
util_datperf1_CPPFLAGS = -DDAT_API=1 $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS)
util_datperf1_LDADD = util/libutil.la libdat.la $(LIBFABRIC_LIBS) -lm

dist_man_MANS += man/man1/datinfo.1 man/man1/datinfo1.1 man/man1/datperf.1 man/man1/datperf1.1

UTIL_TESTS += test/unit/util/programs.sh test/unit/util/doctor.sh
LIBFABRIC_TESTS += test/unit/util/doctor.sh
EXTRA_DIST += test/unit/util/programs.sh test/unit/util/doctor.sh

if HAVE_CRITERION
util_unit_tests = \
	test/unit/util/dat_text1_test \
	test/unit/util/dat_text2_test \
	test/unit/util/info_attr1_test \
	test/unit/util/info_attr2_test \
	test/unit/util/info_caps1_test \
	test/unit/util/info_caps2_test \
	test/unit/util/info_checks_test \
	test/unit/util/perf_hosts_test \
	test/unit/util/info_child_test \
	test/unit/util/info_fix_test \
	test/unit/util/info_conf_test \
	test/unit/util/info_conf_append_test \
	test/unit/util/info_settings_test \
	test/unit/util/info_wrap_test \
	test/unit/util/info_count_test \
	test/unit/util/info_explain1_test \
	test/unit/util/info_explain2_test \
	test/unit/util/info_list_test \
	test/unit/util/log_lines_test \
	test/unit/util/json_test \
	test/unit/util/perf_dat_test \
	test/unit/util/perf_host_test \
	test/unit/util/perf_loop_test \
	test/unit/util/perf_measure_test \
	test/unit/util/perf_oob_test \
	test/unit/util/perf_opts_test \
	test/unit/util/perf_out_data_test \
	test/unit/util/perf_out_test \
	test/unit/util/perf_peers_out_test \
	test/unit/util/perf_plot_test \
	test/unit/util/perf_run_test \
	test/unit/util/perf_samples_test \
	test/unit/util/perf_stat_test \
	test/unit/util/perf_table_test \
	test/unit/util/perf_ud_test \
	test/unit/util/perf_wire_test \
	test/unit/util/perf_xport_test

check_PROGRAMS += $(util_unit_tests)
UTIL_TESTS += $(util_unit_tests)
endif

util_test_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/util $(CRITERION_CFLAGS)
util_attr_files = \
	test/unit/util/info_attr_test.c \
	util/dat_text.c \
	util/info_attr.c

util_caps_files = \
	test/unit/util/info_caps_test.c \
	util/dat_text.c \
	util/info_attr.c \
	util/info_caps.c

util_explain_files = \
	test/unit/util/info_explain_test.c util/info_explain.c util/info_values.c \
	test/unit/recorded.h
util_text_files = test/unit/util/dat_text_test.c util/dat_text.c

test_unit_util_dat_text1_test_SOURCES = $(util_text_files)
test_unit_util_dat_text1_test_CPPFLAGS = -DDAT_API=1 $(util_test_cppflags)
test_unit_util_dat_text1_test_LDADD = $(CRITERION_LIBS)
test_unit_util_dat_text2_test_SOURCES = $(util_text_files)
test_unit_util_dat_text2_test_CPPFLAGS = -DDAT_API=2 $(util_test_cppflags)
test_unit_util_dat_text2_test_LDADD = $(CRITERION_LIBS)
test_unit_util_info_attr1_test_SOURCES = $(util_attr_files)
test_unit_util_info_attr1_test_CPPFLAGS = -DDAT_API=1 $(util_test_cppflags)
test_unit_util_info_attr1_test_LDADD = util/libutil.la $(CRITERION_LIBS) -lm
test_unit_util_info_attr2_test_SOURCES = $(util_attr_files)
test_unit_util_info_attr2_test_CPPFLAGS = -DDAT_API=2 $(util_test_cppflags)
test_unit_util_info_attr2_test_LDADD = util/libutil.la $(CRITERION_LIBS) -lm
test_unit_util_info_caps1_test_SOURCES = $(util_caps_files)
test_unit_util_info_caps1_test_CPPFLAGS = -DDAT_API=1 $(util_test_cppflags)
test_unit_util_info_caps1_test_LDADD = util/libutil.la $(CRITERION_LIBS) -lm
test_unit_util_info_caps2_test_SOURCES = $(util_caps_files)
test_unit_util_info_caps2_test_CPPFLAGS = -DDAT_API=2 $(util_test_cppflags)
test_unit_util_info_caps2_test_LDADD = util/libutil.la $(CRITERION_LIBS) -lm
test_unit_util_info_checks_test_SOURCES = \
	test/unit/util/info_checks_test.c util/info_checks.c
test_unit_util_info_checks_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_info_checks_test_LDADD = $(CRITERION_LIBS)
test_unit_util_info_child_test_SOURCES = \
	test/unit/util/info_child_test.c util/info_child.c util/log_lines.c
test_unit_util_info_child_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_info_child_test_LDADD = $(CRITERION_LIBS)
test_unit_util_perf_hosts_test_SOURCES = \
	test/unit/util/perf_hosts_test.c util/perf_hosts.c
test_unit_util_perf_hosts_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_hosts_test_LDADD = util/libutil.la $(CRITERION_LIBS)
test_unit_util_info_fix_test_SOURCES = \
	test/unit/util/info_fix_test.c util/info_fix.c
test_unit_util_info_fix_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_info_fix_test_LDADD = $(CRITERION_LIBS)
test_unit_util_info_list_test_SOURCES = \
	test/unit/util/info_list_test.c util/info_list.c
test_unit_util_info_list_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_info_list_test_LDADD = $(CRITERION_LIBS)
test_unit_util_log_lines_test_SOURCES = \
	test/unit/util/log_lines_test.c util/log_lines.c
test_unit_util_log_lines_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_log_lines_test_LDADD = $(CRITERION_LIBS)
test_unit_util_info_conf_test_SOURCES = \
	test/unit/util/info_conf_test.c util/info_conf.c
test_unit_util_info_conf_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_info_conf_test_LDADD = $(CRITERION_LIBS)
test_unit_util_info_conf_append_test_SOURCES = \
	test/unit/util/info_conf_append_test.c util/info_conf_append.c src/conf.c
test_unit_util_info_conf_append_test_CPPFLAGS = -DDAT_API=2 $(util_test_cppflags) \
	-I$(top_srcdir)/src -DDAT_CONFDIR='"."'
test_unit_util_info_conf_append_test_LDADD = $(CRITERION_LIBS)
test_unit_util_info_explain1_test_SOURCES = $(util_explain_files)
test_unit_util_info_explain1_test_CPPFLAGS = -DDAT_API=1 $(util_test_cppflags)
test_unit_util_info_explain1_test_LDADD = libdat.la $(CRITERION_LIBS)
test_unit_util_info_explain2_test_SOURCES = $(util_explain_files)
test_unit_util_info_explain2_test_CPPFLAGS = -DDAT_API=2 $(util_test_cppflags)
test_unit_util_info_explain2_test_LDADD = libdat2.la $(CRITERION_LIBS)
test_unit_util_info_wrap_test_SOURCES = \
	test/unit/util/info_wrap_test.c util/info_wrap.c
test_unit_util_info_wrap_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_info_wrap_test_LDADD = $(CRITERION_LIBS)
test_unit_util_info_settings_test_SOURCES = \
	test/unit/util/info_settings_test.c util/info_settings.c
test_unit_util_info_settings_test_CPPFLAGS = -DDAT_API=2 $(util_test_cppflags)
test_unit_util_info_settings_test_LDADD = util/libutil.la $(CRITERION_LIBS) -lm

test_unit_util_info_count_test_SOURCES = \
	test/unit/util/info_count_test.c util/info_count.c
test_unit_util_info_count_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_info_count_test_LDADD = $(CRITERION_LIBS)
test_unit_util_json_test_SOURCES = test/unit/util/json_test.c
test_unit_util_json_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_json_test_LDADD = util/libutil.la $(CRITERION_LIBS) -lm
test_unit_util_perf_dat_test_SOURCES = \
	test/unit/util/perf_dat_test.c
test_unit_util_perf_dat_test_CPPFLAGS = -DDAT_API=2 $(util_test_cppflags)
test_unit_util_perf_dat_test_LDADD = $(CRITERION_LIBS)
test_unit_util_perf_host_test_SOURCES = \
	test/unit/util/perf_host_test.c
test_unit_util_perf_host_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_host_test_LDADD = util/libutil.la $(CRITERION_LIBS)
test_unit_util_perf_measure_test_SOURCES = \
	test/unit/util/perf_measure_test.c
test_unit_util_perf_measure_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_measure_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=perf_run_point
test_unit_util_perf_measure_test_LDADD = util/libutil.la $(CRITERION_LIBS)
test_unit_util_perf_samples_test_SOURCES = \
	test/unit/util/perf_samples_test.c
test_unit_util_perf_samples_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_samples_test_LDADD = util/libutil.la $(CRITERION_LIBS)
test_unit_util_perf_loop_test_SOURCES = \
	test/unit/util/perf_loop_test.c
test_unit_util_perf_loop_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_loop_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=perf_now_ns
test_unit_util_perf_loop_test_LDADD = util/libutil.la $(CRITERION_LIBS)
test_unit_util_perf_oob_test_SOURCES = \
	test/unit/util/perf_oob_test.c
test_unit_util_perf_oob_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_oob_test_LDADD = util/libutil.la $(CRITERION_LIBS)
test_unit_util_perf_opts_test_SOURCES = \
	test/unit/capture.h \
	test/unit/util/perf_opts_test.c
test_unit_util_perf_opts_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_opts_test_LDADD = util/libutil.la $(CRITERION_LIBS) -lm
test_unit_util_perf_out_data_test_SOURCES = \
	test/unit/util/perf_out_data_test.c \
	test/unit/util/perf_out_rows.h
test_unit_util_perf_out_data_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_out_data_test_LDADD = util/libutil.la $(CRITERION_LIBS) -lm
test_unit_util_perf_out_test_SOURCES = \
	test/unit/util/perf_out_rows.h \
	test/unit/util/perf_out_test.c
test_unit_util_perf_out_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_out_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=perf_now_ns
test_unit_util_perf_out_test_LDADD = util/libutil.la $(CRITERION_LIBS) -lm
test_unit_util_perf_peers_out_test_SOURCES = \
	test/unit/util/perf_peers_out_test.c
test_unit_util_perf_peers_out_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_peers_out_test_LDADD = util/libutil.la $(CRITERION_LIBS) -lm
test_unit_util_perf_plot_test_SOURCES = \
	test/unit/util/perf_plot_test.c
test_unit_util_perf_plot_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_plot_test_LDADD = util/libutil.la $(CRITERION_LIBS)
test_unit_util_perf_run_test_SOURCES = \
	test/unit/util/perf_run_test.c
test_unit_util_perf_run_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_run_test_LDADD = util/libutil.la $(CRITERION_LIBS)
test_unit_util_perf_stat_test_SOURCES = \
	test/unit/util/perf_stat_test.c
test_unit_util_perf_stat_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_stat_test_LDADD = util/libutil.la $(CRITERION_LIBS)
test_unit_util_perf_table_test_SOURCES = \
	test/unit/util/perf_table_test.c
test_unit_util_perf_table_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_table_test_LDADD = util/libutil.la $(CRITERION_LIBS)
test_unit_util_perf_ud_test_SOURCES = \
	test/unit/util/perf_ud_test.c
test_unit_util_perf_ud_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_ud_test_LDADD = util/libutil.la $(CRITERION_LIBS)
test_unit_util_perf_wire_test_SOURCES = \
	test/unit/util/perf_wire_test.c
test_unit_util_perf_wire_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_wire_test_LDADD = util/libutil.la $(CRITERION_LIBS)
test_unit_util_perf_xport_test_SOURCES = \
	test/unit/util/perf_xport_test.c
test_unit_util_perf_xport_test_CPPFLAGS = $(util_test_cppflags)
test_unit_util_perf_xport_test_LDADD = util/libutil.la $(CRITERION_LIBS)

# The model of DAT, and the driver that compares an IA with it.

check_PROGRAMS += test/model/model1 test/model/model2
model_sources = test/model/drive.c test/model/model.c test/model/model.h
test_model_model1_SOURCES = $(model_sources)
test_model_model1_CPPFLAGS = $(pair_cppflags1)
test_model_model1_LDADD = $(pair_ldadd1)
test_model_model2_SOURCES = $(model_sources)
test_model_model2_CPPFLAGS = $(pair_cppflags2)
test_model_model2_LDADD = $(pair_ldadd2)

SLOW_TESTS += test/model/model.sh
LIBFABRIC_TESTS += test/model/model.sh
EXTRA_DIST += test/model/model.sh

#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The model of DAT (model.c) against each IA of this machine, with both API versions.
#
# Without sockets: on a busy machine it loses a connection now and then (CAVEATS of dat_ofi(7)).
#
# Environment: MODEL_IAS        the IAs (the ones below)
#              MODEL_SEED, MODEL_SEQUENCES, MODEL_CALLS: see drive.c

. "${top_srcdir:-.}/test/robust/tap.sh"
: "${MODEL_SEQUENCES:=10}"
export MODEL_SEQUENCES

# Without DAT_TEST_IA's fabric the program exits with 77.
on()
{
	DAT_TEST_IA=$1 "${top_builddir:-.}/test/model/$2"
}

# A model with a wrong limit: the program must find a difference.
wrong_on()
{
	found=$(MODEL_WRONG=1 on "$@")
	case $? in
	1) echo "$found" | grep '^seed .*max_message_size' ;;
	77) return 77 ;;
	*) return 1 ;;
	esac
}

usual='ofi ofi-tcp ofi-shm ofi-rxm ofi-shm-rdm ofi-tcp-rdm'
for ia in ${MODEL_IAS:-$usual}; do
	for version in 1 2; do
		try "model$version, $ia" on "$ia" "model$version"
	done
done
case " ${MODEL_IAS:-$usual} " in
*' ofi '*) try "a wrong model, ofi" wrong_on ofi model2 ;;
esac
finish

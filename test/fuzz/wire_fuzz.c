/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unpacks any bytes as private data; accepted data must be unchanged after packing and unpacking.
 */

#include "fuzz.h"
#include "xport/wire.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	unsigned char buf[DOFI_WIRE_MAX];
	struct dofi_wire msg, again;
	size_t size;

	if (dofi_wire_unpack(bytes, len, &msg))
		return 0;
	fuzz_expect(msg.data_size <= DOFI_WIRE_MAX_DATA);
	fuzz_expect((const uint8_t *)msg.data + msg.data_size <= bytes + len);
	size = dofi_wire_pack(buf, &msg);
	fuzz_expect(size <= DOFI_WIRE_MAX && size <= len);
	fuzz_expect(!dofi_wire_unpack(buf, size, &again));
	fuzz_expect(again.data_size == msg.data_size);
	fuzz_expect(!msg.data_size || !memcmp(again.data, msg.data, msg.data_size));
	fuzz_expect(again.kind == msg.kind && again.conn_qual == msg.conn_qual);
	fuzz_expect(again.secret == msg.secret && again.preambles == msg.preambles);
	fuzz_expect(again.mailbox.addr == msg.mailbox.addr &&
		    again.mailbox.key == msg.mailbox.key && again.mailbox.id == msg.mailbox.id);
	return 0;
}

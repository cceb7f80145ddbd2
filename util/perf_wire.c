/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Encoding of the messages between two datperf processes. */
#include "perf_wire.h"

#include <string.h>

#define HELLO_MAGIC 0x64706631u /* "dpf1" */
#define CTL_MAGIC 0x64706663u	/* "dpfc" */
#define WIRE_VERSION 5

static unsigned char *put(unsigned char *buf, uint64_t value, int bytes)
{
	while (bytes--)
		*buf++ = (unsigned char)(value >> (8 * bytes));
	return buf;
}

static uint64_t get(const unsigned char **buf, int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | *(*buf)++;
	return value;
}

void perf_hello_encode(const struct perf_hello *hello, unsigned char *buf)
{
	buf = put(buf, HELLO_MAGIC, 4);
	buf = put(buf, WIRE_VERSION, 2);
	buf = put(buf, hello->flags, 2);
	buf = put(buf, hello->size_max, 4);
	buf = put(buf, hello->window, 2);
	buf = put(buf, hello->endpoints, 1);
	buf = put(buf, hello->threads, 1);
	buf = put(buf, hello->addr, 8);
	buf = put(buf, hello->key, 4);
	buf = put(buf, hello->index, 2);
	buf = put(buf, hello->session, 2);
	put(buf, hello->segments, 1);
}

int perf_hello_decode(struct perf_hello *hello, const void *buf, size_t len)
{
	const unsigned char *in = buf;

	/* a fabric may pad private data, so only a shorter length is wrong */
	if (!buf || len < PERF_HELLO_LEN || get(&in, 4) != HELLO_MAGIC ||
	    get(&in, 2) != WIRE_VERSION)
		return -1;
	hello->flags = (uint16_t)get(&in, 2);
	hello->size_max = (uint32_t)get(&in, 4);
	hello->window = (uint16_t)get(&in, 2);
	hello->endpoints = (uint8_t)get(&in, 1);
	hello->threads = (uint8_t)get(&in, 1);
	hello->addr = get(&in, 8);
	hello->key = (uint32_t)get(&in, 4);
	hello->index = (uint16_t)get(&in, 2);
	hello->session = (uint16_t)get(&in, 2);
	hello->segments = (uint8_t)get(&in, 1);
	return 0;
}

void perf_card_encode(const struct perf_card *card, unsigned char *buf)
{
	perf_hello_encode(&card->hello, buf);
	buf = put(buf + PERF_HELLO_LEN, card->len, 4);
	memcpy(buf, card->address, PERF_ADDRESS_MAX);
}

int perf_card_decode(struct perf_card *card, const void *buf, size_t len)
{
	const unsigned char *in = (const unsigned char *)buf + PERF_HELLO_LEN;

	if (len < PERF_CARD_LEN || perf_hello_decode(&card->hello, buf, len))
		return -1;
	card->len = (uint32_t)get(&in, 4);
	if (!card->len || card->len > PERF_ADDRESS_MAX)
		return -1;
	memset(card->address, 0, sizeof(card->address));
	memcpy(card->address, in, card->len);
	return 0;
}

void perf_ctl_encode(const struct perf_ctl *ctl, unsigned char *buf)
{
	buf = put(buf, CTL_MAGIC, 4);
	buf = put(buf, ctl->type, 2);
	buf = put(buf, ctl->kind, 2);
	buf = put(buf, ctl->seed, 4);
	buf = put(buf, ctl->slots, 4);
	buf = put(buf, ctl->size, 8);
	buf = put(buf, ctl->iters, 8);
	buf = put(buf, ctl->value, 8);
	buf = put(buf, ctl->flags, 4);
	buf = put(buf, ctl->cpu_ns, 8);
	buf = put(buf, ctl->address_len, 4);
	memcpy(buf, ctl->address, PERF_ADDRESS_MAX);
	memset(buf + PERF_ADDRESS_MAX, 0, PERF_CTL_LEN - PERF_ADDRESS_MAX - 56);
}

bool perf_ctl_begins(const void *buf)
{
	const unsigned char *in = buf;

	return get(&in, 4) == CTL_MAGIC;
}

int perf_ctl_decode(struct perf_ctl *ctl, const void *buf, size_t len)
{
	const unsigned char *in = buf;

	if (len < PERF_CTL_LEN || !perf_ctl_begins(buf))
		return -1;
	in += 4;
	ctl->type = (uint16_t)get(&in, 2);
	ctl->kind = (uint16_t)get(&in, 2);
	ctl->seed = (uint32_t)get(&in, 4);
	ctl->slots = (uint32_t)get(&in, 4);
	ctl->size = get(&in, 8);
	ctl->iters = get(&in, 8);
	ctl->value = get(&in, 8);
	ctl->flags = (uint32_t)get(&in, 4);
	ctl->cpu_ns = get(&in, 8);
	ctl->address_len = (uint32_t)get(&in, 4);
	memcpy(ctl->address, in, PERF_ADDRESS_MAX);
	return ctl->address_len > PERF_ADDRESS_MAX ? -1 : 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The EP and the peer of coupled.h before they are connected. Either can connect to the other. */
#ifndef UNIT_XPORT_TALK_H
#define UNIT_XPORT_TALK_H

#include "xport/coupled.h"

/* coupled_init() without the connection. */
void talk_init(void);
/* Checks that nothing is left of a connection but the PZ's endpoint. */
void talk_fini(void);

bool data_is(const void *data, DAT_COUNT size, const char *text);

/*
 * The peer connects to psp, which listens at qual. request() returns an honest request, not sent
 * yet.
 */
extern DAT_PSP_HANDLE psp;
extern DAT_CONN_QUAL qual;
struct dofi_cm_msg request(void);
DAT_CR_HANDLE request_sent(const struct dofi_cm_msg *msg);
/* @msg causes no event, and the peer is refused with @reason. */
void refused_with(const struct dofi_cm_msg *msg, enum dofi_cm_reason reason);
/* ep accepts the request. The connection may then fail. */
void accept_with(DAT_CR_HANDLE cr, const char *data);
void accept_fails(void);

/* ep connects to a socket that listens at own_port. */
extern DAT_CONN_QUAL own_port;
int listener(void);
void connect_with(const char *data, DAT_TIMEOUT timeout);
/* peer receives ep's request. */
void is_asked(void);
void is_asked_within(DAT_TIMEOUT timeout);
/* The peer's answer. */
void reply(enum dofi_cm_kind kind, uint8_t reason);

/* A message of the peer is received. */
void is_heard(void);
/* The peer sends BYE, after this many frames. */
void say_bye(uint32_t last_frame, uint8_t reason);
/* The last event is @number. */
void ends_with(DAT_EVENT_NUMBER number);

#endif

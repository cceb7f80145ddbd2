/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The EP and the peer of coupled.h before they are connected: either asks the other. */
#ifndef UNIT_XPORT_TALK_H
#define UNIT_XPORT_TALK_H

#include "xport/coupled.h"

/* As coupled_init(), but for the connection. */
void talk_init(void);
/* Nothing is left of a connection but the zone's endpoint. */
void talk_fini(void);

bool data_is(const void *data, DAT_COUNT size, const char *text);

/* The peer asks at @psp, which listens for @qual: an honest request, yet to be sent. */
extern DAT_PSP_HANDLE psp;
extern DAT_CONN_QUAL qual;
struct dofi_cm_msg request(void);
DAT_CR_HANDLE request_sent(const struct dofi_cm_msg *msg);
/* Who listens hears nothing of @msg, and its sender this. */
void refused_with(const struct dofi_cm_msg *msg, enum dofi_cm_reason reason);
/* @ep takes it; which may come to nothing. */
void accept_with(DAT_CR_HANDLE cr, const char *data);
void accept_fails(void);

/* @ep asks at a socket that listens at @own_port, */
extern DAT_CONN_QUAL own_port;
int listener(void);
void connect_with(const char *data, DAT_TIMEOUT timeout);
/* and @peer has heard it; */
void is_asked(void);
void is_asked_within(DAT_TIMEOUT timeout);
/* what it says to that. */
void reply(enum dofi_cm_kind kind, uint8_t reason);

/* A message of the peer's is received as it should be. */
void is_heard(void);
/* The peer leaves, after so many frames. */
void say_bye(uint32_t last_frame, uint8_t reason);
/* The last event is @number. */
void ends_with(DAT_EVENT_NUMBER number);

#endif

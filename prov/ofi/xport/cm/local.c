/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CM connections within a host: AF_UNIX sockets. The kernel reports the user at the other end. */

#include "xport/cm/local.h"

#include "base/log.h"
#include "xport/cm/address.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/un.h>

static void listener_name(struct sockaddr_un *name, enum dofi_local_service service,
			  uint64_t conn_qual)
{
	static const char *const services[] = {
		[DOFI_LOCAL_CONNECTIONS] = "side", [DOFI_LOCAL_DATAGRAMS] = "datagrams",
	};

	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "dat-ofi/%s/%" PRIu64,
		 services[service], conn_qual);
}

int dofi_local_listen(struct dofi_progress *progress, enum dofi_local_service service,
		      uint64_t conn_qual, const struct dofi_cm_ops *ops, void *owner,
		      struct dofi_cm_listener **listener)
{
	struct sockaddr_un name;
	int ret;

	listener_name(&name, service, conn_qual);
	ret = dofi_cm_listen(progress, (struct sockaddr *)&name, ops, owner, listener);
	if (ret == -EADDRINUSE)
		dofi_log(DOFI_INFO, DOFI_CM, "@%s is taken, see ss -xlp", name.sun_path + 1);
	return ret;
}

int dofi_local_connect(struct dofi_progress *progress, enum dofi_local_service service,
		       uint64_t conn_qual, const struct sockaddr_storage *to,
		       const struct dofi_cm_ops *ops, void *owner,
		       const struct dofi_cm_msg *first, struct dofi_cm_conn **conn)
{
	struct sockaddr_un name;
	int fd;

	listener_name(&name, service, conn_qual);
	fd = dofi_cm_socket((struct sockaddr *)&name);
	if (fd < 0)
		return fd;
	dofi_cm_name_socket(fd, to);
	return dofi_cm_connect_by(progress, fd, (struct sockaddr *)&name, ops, owner, first, conn);
}

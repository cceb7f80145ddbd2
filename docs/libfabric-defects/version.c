/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Prints the version of the loaded libfabric. */
#include <rdma/fabric.h>
#include <stdio.h>

int main(void)
{
	printf("%u.%u\n", FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
	return 0;
}

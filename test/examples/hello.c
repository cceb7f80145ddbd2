/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program in dat(7), as the page has it. */

#include "pages/dat.h"

int main(int argc, char **argv)
{
	return dat_main(argc, argv);
}

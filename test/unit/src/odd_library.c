/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Libraries for load_test.c that need no registry: a provider without dat_provider_fini, and with
 * UNRESOLVED one that needs a function that does not exist.
 */

void dat_provider_init(const void *info, const char *ia_params);
void odd_library_mark(void);
void odd_library_needs(void);

void odd_library_mark(void)
{
}

void dat_provider_init(const void *info, const char *ia_params)
{
#ifdef UNRESOLVED
	odd_library_needs();
#endif
}

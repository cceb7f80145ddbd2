/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Libraries for load_test.c that need no registry: a provider that cannot be stopped, and
 * with UNRESOLVED one that needs a function which nobody has.
 */

void dat_provider_init(const void *info, const char *ia_params);
void odd_library_mark(void);
void odd_library_needs(void);

void odd_library_mark(void)
{
}

void dat_provider_init(const void *info, const char *ia_params)
{
	(void)info;
	(void)ia_params;
#ifdef UNRESOLVED
	odd_library_needs();
#endif
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tries every IA in a process of its own, checks the machine, and explains failures. */
#include "info_doctor.h"

#include "dat_cause.h"
#include "dat_text.h"
#include "info_checks.h"
#include "info_child.h"
#include "info_fix.h"
#include "info_libfabric.h"
#include "info_loop.h"
#include "info_path.h"
#include "info_settings.h"
#include "log_lines.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unversioned"
#endif

/* The end of a reason that this program gives in full. */
#define HINT " (datinfo --doctor finds the cause)"

/* A step of a working fabric takes at most a second. */
#define STEP_SECONDS 20

/* The child process's findings about an IA. */
struct trial {
	DAT_PROVIDER_INFO info;
	char fabric[64], domain[64], address[64], fabrics[256], local[64], settings[256];
	double us;
	char why[REASON_MAX];
};

/* --- dat.conf ------------------------------------------------------------- */

/* Lets the registry log the entries that it reads, besides errors. */
static void registry_log_entries(void)
{
	const char *types = secure_getenv("DAT_DBG_TYPE");
	char value[24];

	snprintf(value, sizeof(value), "%lu", (types ? strtoul(types, NULL, 0) : 0) | 0x5);
	setenv("DAT_DBG_TYPE", value, 1);
}

/* Prints a line of the registry's log: the name of a file once, problems, but no entries. */
static void conf_line_print(FILE *out, const char *line, char *last, size_t len)
{
	const char *text = strstr(line, ": "), *colon;
	size_t path_len;

	text = text ? text + 2 : line;
	colon = strchr(text, ':');
	path_len = colon ? (size_t)(colon - text) : 0;
	if (strstr(text, ", ignored"))
		return;
	if (!strstr(text, " from ")) {
		fprintf(out, "  %-16s %s\n", "dat.conf", text);
		return;
	}
	if (strlen(last) == path_len && !strncmp(last, text, path_len))
		return;
	snprintf(last, len, "%.*s", (int)path_len, text);
	fprintf(out, "  %-16s %s\n", "dat.conf", last);
}

static bool conf_read(FILE *out, struct registry *r)
{
	char text[LOG_TEXT_MAX] = "", last[256] = "", *line, *save;
	struct log_capture capture;
	bool ok, captured;

	registry_log_entries();
	captured = log_capture_begin(&capture);
	ok = !registry_read(r);
	if (captured)
		log_capture_end(&capture, text);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		conf_line_print(out, line, last, sizeof(last));
	return ok;
}

/* --- one IA --------------------------------------------------------------- */

static void text_set(char *to, size_t len, const char *from)
{
	snprintf(to, len, "%s", from);
}

static void trial_describe(struct trial *t, const struct ia *ia)
{
	text_set(t->fabric, sizeof(t->fabric), ia_named(ia, "OFI_PROVIDER"));
	text_set(t->domain, sizeof(t->domain), ia_named(ia, "OFI_DOMAIN"));
	text_set(t->fabrics, sizeof(t->fabrics), ia_named(ia, "OFI_FABRICS"));
	text_set(t->local, sizeof(t->local), ia_named(ia, "OFI_LOCAL"));
	dat_text_address(ia->attr.ia_address_ptr, t->address, sizeof(t->address));
	settings_judge(&ia->provider, t->settings, sizeof(t->settings));
}

/* In the child process. */
static bool trial_run(struct child *c, void *shared)
{
	struct trial *t = shared;
	struct ia ia;
	bool works;

	child_step(c, "opening the IA");
	if (ia_open(&t->info, &ia, t->why, sizeof(t->why)))
		return false;
	trial_describe(t, &ia);
	works = loop_run(c, ia.handle, ia.attr.ia_address_ptr, &t->us, t->why, sizeof(t->why));
	child_step(c, "closing the IA");
	dat_ia_close(ia.handle, DAT_CLOSE_ABRUPT_FLAG);
	return works;
}

/* Completes t->why by the child's end and log. */
static void trial_judge(struct trial *t, const struct child_result *r)
{
	const char *log = log_without_ia(r->log, t->info.ia_name);
	char why[REASON_MAX];

	text_set(why, sizeof(why), t->why);
	switch (r->end) {
	case CHILD_HUNG:
		snprintf(t->why, sizeof(t->why),
			 "%s took more than %d s, the fabric hangs" DAT_CAUSE_FORMAT, r->step,
			 STEP_SECONDS, DAT_CAUSE_HANG);
		break;
	case CHILD_DIED:
		snprintf(t->why, sizeof(t->why), "the process died while %s (%s)", r->step,
			 r->signal ? strsignal(r->signal) : "it exited");
		break;
	default:
		if (log[0] && !strstr(why, log))
			snprintf(t->why, sizeof(t->why), "%.200s: %.300s", why, log);
	}
}

static bool trial_do(const DAT_PROVIDER_INFO *info, struct trial *t)
{
	struct child_result r;
	char *hint;

	memset(t, 0, sizeof(*t));
	t->info = *info;
	if (child_run(trial_run, t, sizeof(*t), STEP_SECONDS, &r)) {
		text_set(t->why, sizeof(t->why), r.log);
		return false;
	}
	if (r.end == CHILD_DONE)
		return true;
	trial_judge(t, &r);
	hint = strstr(t->why, HINT);
	if (hint)
		memmove(hint, hint + strlen(HINT), strlen(hint + strlen(HINT)) + 1);
	return false;
}

static void trial_print(FILE *out, struct trial *t, bool works)
{
	char fix[CHECK_TEXT_MAX];

	if (works) {
		fprintf(out, "  %-16s %-5s %s, domain %s, address %s; %d messages: %.1f us each\n",
			t->info.ia_name, "yes", t->fabric, t->domain, t->address, LOOP_MESSAGES,
			t->us);
		return;
	}
	fix_find(t->why, fix, sizeof(fix));
	fprintf(out, "  %-16s %-5s %s%s%s\n", t->info.ia_name, "no", reason_text(t->why),
		fix[0] ? "; " : "", fix);
}

/* --- all IAs -------------------------------------------------------------- */

/* The order in which the provider prefers fabrics if dat.conf names none: dat_ofi(7). */
static const char *const preferred[] = { "verbs", "tcp", "sockets" };

/* Returns the fabric that the provider prefers among @fabrics, NULL if none is in the order. */
static const char *first_of(const char *fabrics)
{
	size_t i;

	for (i = 0; i < sizeof(preferred) / sizeof(preferred[0]); i++)
		if (has_word(fabrics, preferred[i]))
			return preferred[i];
	return NULL;
}

/* An entry that names no fabric has the provider's own shared memory, too. */
static bool names_no_fabric(const struct trial *t)
{
	return strcmp(t->local, "-");
}

static bool is_loopback(const char *address)
{
	return !strncmp(address, "127.", 4) || !strcmp(address, "::1");
}

/* Shared memory has no address of a network interface, and needs none. */
static bool reaches_this_host_only(const struct trial *t)
{
	return is_loopback(t->address) && strcmp(t->fabric, "rings") && strcmp(t->fabric, "shm");
}

static void choice_print(FILE *out, const struct trial *t)
{
	const char *filter = secure_getenv("FI_PROVIDER"), *first = first_of(t->fabrics);

	fprintf(out, "  %-16s takes %s", t->info.ia_name, t->fabric);
	if (names_no_fabric(t) && first && !strcmp(first, t->fabric))
		fprintf(out, ", the first of verbs, tcp, sockets that is usable here");
	fprintf(out, "; usable: %s", t->fabrics);
	if (filter)
		fprintf(out, "; FI_PROVIDER=%s restricts the choice", filter);
	if (names_no_fabric(t))
		fprintf(out, "; peers on this host: %s", t->local);
	fputc('\n', out);
	if (reaches_this_host_only(t))
		fprintf(out, "  %-16s has the loopback address %s: other hosts cannot connect; "
			"\"ip -br address\" shows whether another interface is up\n",
			t->info.ia_name, t->address);
}

static bool wanted(const struct registry *r, int i, const char *device)
{
	return registry_is_ours(&r->info[i]) && !registry_repeats(r, i) &&
	       (!device || !strcmp(r->info[i].ia_name, device));
}

/* Returns the name of the IA that decides about the result, NULL if there is none. */
static const char *default_of(const struct registry *r, const char *device)
{
	const char *first = NULL;
	int i;

	for (i = 0; i < r->n; i++) {
		if (!wanted(r, i, device))
			continue;
		if (!first || !strcmp(r->info[i].ia_name, DOCTOR_DEFAULT))
			first = r->info[i].ia_name;
	}
	return first;
}

static void heading_print(FILE *out)
{
	fprintf(out, "\n  %-16s %-5s\n", "IA", "works");
}

/* Tries the IA @name alone, and prints the checks that matter to its fabrics. */
static bool one_do(FILE *out, const struct registry *r, const char *name, struct trial *best)
{
	char fabrics[sizeof(best->fabric) + sizeof(best->local) + 2];
	bool works;
	int i;

	for (i = 0; !wanted(r, i, name); i++)
		;
	works = trial_do(&r->info[i], best);
	snprintf(fabrics, sizeof(fabrics), "%s %s", best->fabric, best->local);
	checks_print(out, best->fabric[0] ? fabrics : NULL);
	heading_print(out);
	trial_print(out, best, works);
	return works;
}

/* Tries each IA. @best gets the trial of the IA @name. Returns whether that IA works. */
static bool all_do(FILE *out, const struct registry *r, const char *name, struct trial *best)
{
	bool result = false, works;
	struct trial t;
	int i;

	checks_print(out, NULL);
	heading_print(out);
	for (i = 0; i < r->n; i++) {
		if (!wanted(r, i, NULL))
			continue;
		works = trial_do(&r->info[i], &t);
		trial_print(out, &t, works);
		fflush(out);
		if (strcmp(t.info.ia_name, name))
			continue;
		*best = t;
		result = works;
	}
	return result;
}

static void verdict_print(FILE *out, const struct trial *best, const char *name, bool works)
{
	fputc('\n', out);
	if (best->settings[0])
		fprintf(out, "  %-16s %s; \"datinfo --settings\" lists them\n", "settings",
			best->settings);
	if (works)
		choice_print(out, best);
	fprintf(out, "  %s %s\n", name, works ? "works" : "does not work");
}

/* Returns how many pairs of adjacent letters of @a are also in @b. */
static int pairs_shared(const char *a, const char *b)
{
	int n = 0;

	for (; a[0] && a[1]; a++)
		n += strstr(b, (char[]){ a[0], a[1], 0 }) != NULL;
	return n;
}

/* Returns the name that is most like @device, or NULL if none is. */
static const char *nearest(const struct registry *r, const char *device)
{
	const char *best = NULL;
	int most = 1, n, i;

	for (i = 0; i < r->n; i++) {
		const char *name = r->info[i].ia_name;

		n = wanted(r, i, NULL) ? pairs_shared(device, name) : 0;
		if (n > most || (best && n == most && strlen(name) < strlen(best))) {
			most = n;
			best = name;
		}
	}
	return best;
}

/* No entry is of the IA @device; NULL: of any. */
static void none_print(FILE *out, const struct registry *r, const char *device)
{
	const char *separator = "; registered are: ", *near = device ? nearest(r, device) : NULL;
	const char *override = secure_getenv("DAT_OVERRIDE");
	int i;

	fprintf(out, "\n  no IA %s%sis registered for DAT %s", device ? device : "",
		device ? " " : "", API_TEXT);
	if (near)
		fprintf(out, "; the nearest name is %s", near);
	for (i = 0; device && i < r->n; i++) {
		if (!wanted(r, i, NULL))
			continue;
		fprintf(out, "%s%s", separator, r->info[i].ia_name);
		separator = ", ";
	}
	fprintf(out, "; %s\n", override && access(override, R_OK) ?
			"correct DAT_OVERRIDE, or unset it" :
			"\"datinfo --conf\" on a machine with an IA prints lines for dat.conf");
}

/* Checks the path from the IA @name to @peer. */
static bool peer_do(FILE *out, const struct registry *r, const char *name,
		    const struct doctor_peer *peer)
{
	bool works;
	int i;

	for (i = 0; !wanted(r, i, name); i++)
		;
	fputc('\n', out);
	works = path_check(out, &r->info[i], peer->host, peer->port);
	fprintf(out, "\n  %s %s %s\n", name, works ? "reaches" : "does not reach", peer->host);
	return works;
}

/* Tries the IA @name alone, or all of them, and prints whether @name works. */
static bool ias_do(FILE *out, const struct registry *r, const char *name, bool alone)
{
	struct trial best = { .us = 0 };
	bool works = alone ? one_do(out, r, name, &best) : all_do(out, r, name, &best);

	verdict_print(out, &best, name, works);
	return works;
}

bool doctor(FILE *out, const char *device, const struct doctor_peer *peer)
{
	struct registry r = { .n = 0 };
	char files[CHECK_TEXT_MAX];
	const char *name;
	bool works = false;

	fprintf(out, "datinfo " PACKAGE_VERSION ", DAT %s\n\n", API_TEXT);
	/* each step of an IA fails in its own way then, none of which is the cause */
	if (check_files(files, sizeof(files)) == CHECK_BAD) {
		check_row(out, "descriptors", CHECK_BAD, "%s", files);
		fprintf(out, "\n  nothing else was checked\n");
		return false;
	}
	libfabric_print(out);
	registry_print(out);
	if (conf_read(out, &r)) {
		name = default_of(&r, device);
		if (!name)
			none_print(out, &r, device);
		else
			works = peer->host ? peer_do(out, &r, name, peer) :
					     ias_do(out, &r, name, device);
	}
	free(r.info);
	return works;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datinfo: prints the registered IA names, the fabric below each, and every attribute with its
 * origin. Uses only the public API; one source for uDAPL 1.2 and DAT 2.0.
 */
#include "datperf.h"
#include "info_caps.h"
#include "info_conf.h"
#include "info_conf_append.h"
#include "info_count.h"
#include "info_doctor.h"
#include "info_explain.h"
#include "info_list.h"
#include "info_registry.h"
#include "info_settings.h"
#include "info_wrap.h"
#include "log_lines.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unversioned"
#endif

/* Directory in which the build installs the provider; empty: left to the dynamic linker. */
#ifndef PROVIDER_DIR
#define PROVIDER_DIR ""
#endif

#define EXIT_USAGE 2
/* Longer lines of text are hard to read. */
#define DOCTOR_WIDTH 100

struct opts {
	const char *device; /* NULL: all IAs */
	bool list, all, conf, append, caps, settings, doctor, json;
	pid_t counters;		/* process to query for counters; 0: none */
	struct doctor_peer peer; /* of the doctor */
	const char *explain;	/* number or name to explain */
	char path[PATH_MAX];	/* of dat.conf, for conf */
};

static const char *const fabric_attrs[] = {
	"OFI_PROVIDER",
	"OFI_DOMAIN",
	"OFI_FABRICS",
	"OFI_FABRICS_RDM",
	"OFI_LIBFABRIC",
	"OFI_NUMA_NODE",
	"OFI_NUMA_DISTANCE",
};

static const char help_text[] =
	"Usage: datinfo [options]\n"
	"\n"
	"Prints the registered IA names, the fabric below each, and every attribute\n"
	"with its value and source.\n"
	"\n"
	"  -D, --device NAME    only this IA\n"
	"  -l, --list           only names, fabrics and addresses, one line per IA that\n"
	"                       can be opened\n"
	"  -a, --all            with --list: also the other IAs, with the reasons\n"
	"      --doctor         try every IA, check the machine, and print what to do about\n"
	"                       what does not work; or, with a host behind the options,\n"
	"                       check the path to \"datperf --server\" there\n"
	"  -p, --port N         the server's port, for --doctor with a host (62050)\n"
	"      --counters PID   print the counters of a process that uses this provider\n"
	"      --conf           print dat.conf entries for the fabrics of this machine\n"
	"      --append         with --conf: append those that dat.conf lacks\n"
	"      --capabilities   print for every attribute the value or limit, the default,\n"
	"                       the states in which it can be modified, the source in\n"
	"                       libfabric and what the provider adds; the name of an IA may\n"
	"                       follow the options\n"
	"      --explain CODE   explain an event number, a return code, or a value of a field,\n"
	"                       such as 0x4003 or DAT_DTO_ERR_FLUSHED\n"
	"      --settings       print the provider's settings and the origin of each\n"
	"  -j, --json           print JSON\n"
	"  -h, --help           print this help\n"
	"  -V, --version        print the version\n"
	"\n"
	"Exit status: 0, 1 if no IA could be opened or the doctor's IA does not work,\n"
	"2 if the command line is wrong.\n";

/* Attributes that are printed elsewhere, or only on request. */
static bool is_known_name(const char *name)
{
	size_t i;

	if (caps_is_note(name) || setting_is(name))
		return true;
	for (i = 0; i < sizeof(fabric_attrs) / sizeof(fabric_attrs[0]); i++)
		if (!strcmp(name, fabric_attrs[i]))
			return true;
	return false;
}

/* --- text --------------------------------------------------------------- */

static void print_attrs(const char *title, const struct attr *attrs, int n, const void *base,
			const struct ia *ia)
{
	char text[ATTR_TEXT_MAX];
	const char *source;
	int i;

	printf("  %-38s %-24s %s\n", title, "value", "source");
	for (i = 0; i < n; i++) {
		source = attr_note(&attrs[i], "OFI_SOURCE", &ia->provider);
		printf("    %-36s %-24s %s\n", attrs[i].name,
		       attr_text(&attrs[i], base, text, sizeof(text)),
		       source ? source : "the provider");
	}
}

static void print_named(const char *title, const DAT_NAMED_ATTR *attr, int n)
{
	bool first = true;
	int i;

	for (i = 0; i < n; i++) {
		if (is_known_name(attr[i].name))
			continue;
		if (first)
			printf("  %s\n", title);
		first = false;
		printf("    %-36s %s\n", attr[i].name, attr[i].value);
	}
}

static void print_device(const struct ia *ia)
{
	if (dat_named_attr(&ia->provider, "DAT_IB_DEVICE_NAME"))
		printf("  device    %s, port %s, %s, MTU %s, GID %s\n",
		       ia_named(ia, "DAT_IB_DEVICE_NAME"), ia_named(ia, "DAT_IB_PORT_NUMBER"),
		       ia_named(ia, "DAT_IB_PORT_STATUS"), ia_named(ia, "DAT_IB_TRANSPORT_MTU"),
		       ia_named(ia, "DAT_IB_GID"));
}

static void print_ia(const DAT_PROVIDER_INFO *info, const struct ia *ia)
{
	char addr[64];

	printf("%s\n", info->ia_name);
	printf("  fabric    %s, domain %s, libfabric %s\n", ia_named(ia, "OFI_PROVIDER"),
	       ia_named(ia, "OFI_DOMAIN"), ia_named(ia, "OFI_LIBFABRIC"));
	printf("  fabrics   %s\n", ia_named(ia, "OFI_FABRICS"));
	printf("  rdm       %s\n", ia_named(ia, "OFI_FABRICS_RDM"));
	printf("  node      %s, distance %s\n", ia_named(ia, "OFI_NUMA_NODE"),
	       ia_named(ia, "OFI_NUMA_DISTANCE"));
	print_device(ia);
	printf("  address   %s\n", dat_text_address(ia->attr.ia_address_ptr, addr, sizeof(addr)));
	print_attrs("IA attributes", ia_attrs, ia_nattrs, &ia->attr, ia);
	print_named("transport attributes", ia->attr.transport_attr, ia->attr.num_transport_attr);
	print_named("vendor attributes", ia->attr.vendor_attr, ia->attr.num_vendor_attr);
	print_attrs("provider attributes", provider_attrs, provider_nattrs, &ia->provider, ia);
	print_named("provider-specific attributes", ia->provider.provider_specific_attr,
		    ia->provider.num_provider_specific_attr);
	printf("\n");
}

static void print_capabilities(const DAT_PROVIDER_INFO *info, const struct ia *ia)
{
	printf("%s on %s\n", info->ia_name, ia_named(ia, "OFI_PROVIDER"));
	caps_print_transport(stdout, &ia->provider);
	caps_print(stdout, "IA attributes", ia_attrs, ia_nattrs, &ia->attr, &ia->provider);
	caps_print(stdout, "provider attributes", provider_attrs, provider_nattrs, &ia->provider,
		   &ia->provider);
	caps_print_ep(stdout, "endpoints", &ia->attr, ia->has_ep ? &ia->ep : NULL, &ia->provider);
	printf("\n");
}

static void print_line(const DAT_PROVIDER_INFO *info, const struct ia *ia, const char *err,
		       const struct list_form *form)
{
	char version[32], address[64];
	struct list_row row = {
		.name = info->ia_name, .version = version,
		.threads = info->is_thread_safe ? "threadsafe" : "nonthreadsafe",
		.error = err ? reason_text(err) : NULL,
	};

	snprintf(version, sizeof(version), "u%u.%u", info->dapl_version_major,
		 info->dapl_version_minor);
	if (ia) {
		row.fabric = ia_named(ia, "OFI_PROVIDER");
		row.domain = ia_named(ia, "OFI_DOMAIN");
		row.address = dat_text_address(ia->attr.ia_address_ptr, address, sizeof(address));
	}
	list_row_print(form, &row);
}

/* --- JSON --------------------------------------------------------------- */

static void json_named(struct json *j, const char *title, const DAT_NAMED_ATTR *attr, int n)
{
	int i;

	json_object(j, title);
	for (i = 0; i < n; i++)
		if (!caps_is_note(attr[i].name) && !setting_is(attr[i].name))
			json_string(j, attr[i].name, attr[i].value);
	json_end(j, '}');
}

static void json_opened(struct json *j, const struct ia *ia)
{
	char addr[64];

	json_string(j, "address", dat_text_address(ia->attr.ia_address_ptr, addr, sizeof(addr)));
	caps_json(j, "ia_attributes", ia_attrs, ia_nattrs, &ia->attr, &ia->provider);
	json_named(j, "transport_attributes", ia->attr.transport_attr, ia->attr.num_transport_attr);
	json_named(j, "vendor_attributes", ia->attr.vendor_attr, ia->attr.num_vendor_attr);
	caps_json(j, "provider_attributes", provider_attrs, provider_nattrs, &ia->provider,
		  &ia->provider);
	caps_json_ep(j, "endpoint_attributes", &ia->attr, ia->has_ep ? &ia->ep : NULL,
		     &ia->provider);
	json_named(j, "provider_specific_attributes", ia->provider.provider_specific_attr,
		   ia->provider.num_provider_specific_attr);
}

static void json_ia(struct json *j, const DAT_PROVIDER_INFO *info, const struct ia *ia,
		    const char *err)
{
	json_object(j, NULL);
	json_string(j, "name", info->ia_name);
	json_uint(j, "version_major", info->dapl_version_major);
	json_uint(j, "version_minor", info->dapl_version_minor);
	json_bool(j, "threadsafe", info->is_thread_safe);
	if (ia)
		json_opened(j, ia);
	else
		json_string(j, "error", err);
	json_end(j, '}');
}

/* --- the registry ------------------------------------------------------- */

static bool is_selected(const struct opts *opts, const struct registry *r, int i)
{
	if (opts->device && strcmp(opts->device, r->info[i].ia_name))
		return false;
	if (!registry_is_ours(&r->info[i]))
		return false;
	return opts->list || !registry_repeats(r, i);
}

static void show(const struct opts *opts, struct json *j, const struct list_form *form,
		 const DAT_PROVIDER_INFO *info, const struct ia *ia, const char *err)
{
	if (opts->json)
		json_ia(j, info, ia, err);
	else if (opts->list)
		print_line(info, ia, err, form);
	else if (ia && opts->caps)
		print_capabilities(info, ia);
	else if (ia)
		print_ia(info, ia);
	else
		printf("%s\n  cannot be opened: %s\n\n", info->ia_name, err);
}

static int none_opened(const struct opts *opts, int tried)
{
	if (opts->device && !tried)
		fprintf(stderr,
			"datinfo: no IA named \"%s\" is registered for "
			"DAT %s\n",
			opts->device, API_TEXT);
	else if (!tried)
		fprintf(stderr,
			"datinfo: no IA is registered for DAT %s "
			"(see dat.conf)\n",
			API_TEXT);
	else
		fprintf(stderr, "datinfo: no IA could be opened\n");
	return EXIT_FAILURE;
}

static size_t longest_name(const struct opts *opts, const struct registry *r)
{
	size_t len, most = 0;
	int i;

	for (i = 0; i < r->n; i++) {
		len = strlen(r->info[i].ia_name);
		if (is_selected(opts, r, i) && len > most)
			most = len;
	}
	return most;
}

/* The lines of the list for IAs that cannot be opened, which come last. */
struct closed {
	FILE *out;	/* NULL without memory */
	char *text;
	size_t size;
	int names;
};

/* Ends the list with all lines, or with the number of names. */
static void closed_end(struct closed *c, FILE *out, bool all)
{
	const bool complete = c->out && !fclose(c->out);
	char *line, *save;

	/* line by line: info_wrap.h */
	for (line = complete && all ? strtok_r(c->text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		fprintf(out, "%s\n", line);
	if (complete && !all && c->names)
		fprintf(out, "%d other name%s cannot be opened here: --all shows the reason%s\n",
			c->names, c->names > 1 ? "s" : "", c->names > 1 ? "s" : "");
	free(c->text);
}

static int show_all(const struct opts *opts, const struct registry *r)
{
	const size_t width = wrap_width(stdout);
	struct list_form form =
		list_form_of(wrap_open(stdout, width), longest_name(opts, r), width), closed_form;
	struct json j = { .out = stdout };
	int i, tried = 0, opened = 0;
	char err[REASON_MAX];
	struct closed closed = { .names = 0 };
	struct ia ia;

	closed.out = open_memstream(&closed.text, &closed.size);
	closed_form = form;
	closed_form.out = closed.out ? closed.out : form.out;
	if (opts->list && !opts->json)
		list_head_print(&form);
	if (opts->json) {
		json_object(&j, NULL);
		json_string(&j, "program", "datinfo");
		json_string(&j, "dat_version", API_TEXT);
		json_array(&j, "ias");
	}
	for (i = 0; i < r->n; i++) {
		if (!is_selected(opts, r, i))
			continue;
		tried++;
		if (ia_open(&r->info[i], &ia, err, sizeof(err))) {
			show(opts, &j, &closed_form, &r->info[i], NULL, err);
			closed.names += opts->list && !registry_repeats(r, i);
			continue;
		}
		opened++;
		show(opts, &j, &form, &r->info[i], &ia, NULL);
		dat_ia_close(ia.handle, DAT_CLOSE_GRACEFUL_FLAG);
	}
	if (opts->json) {
		json_end(&j, ']');
		json_end(&j, '}');
	}
	closed_end(&closed, form.out, opts->all || opts->device || !opened);
	wrap_close(form.out, stdout);
	return opened ? EXIT_SUCCESS : none_opened(opts, tried);
}

/* Entries of the fabrics of this machine, which the caller frees; NULL without memory. */
static char *conf_text(const char *fabrics, const char *rdm)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	conf_render(out, PROVIDER_DIR, fabrics, rdm);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

static bool append_to_conf(const char *path, const char *text)
{
	int n = text ? conf_append(path, text) : -ENOMEM;

	if (n < 0)
		fprintf(stderr, "datinfo: cannot append to %s: %s\n", path,
			n == -EINVAL ? "not a regular file" : strerror(-n));
	else
		printf("%s: %d entries appended\n", path, n);
	return n >= 0;
}

static int conf_of(const struct opts *opts, const struct ia *ia)
{
	const char *fabrics = dat_named_attr(&ia->provider, "OFI_FABRICS");
	const char *rdm = dat_named_attr(&ia->provider, "OFI_FABRICS_RDM");
	bool done;
	char *text;

	if (!fabrics)
		return -1;
	text = conf_text(fabrics, rdm ? rdm : "");
	done = opts->append ? append_to_conf(opts->path, text) : text && fputs(text, stdout) >= 0;
	free(text);
	return done ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int settings_of(const struct opts *opts, const struct ia *ia)
{
	struct json j = { .out = stdout };

	if (!settings_reported(&ia->provider))
		return -1;
	if (!opts->json) {
		settings_print(stdout, &ia->provider);
		return EXIT_SUCCESS;
	}
	json_object(&j, NULL);
	json_string(&j, "program", "datinfo");
	json_array(&j, "settings");
	settings_json(&j, &ia->provider);
	json_end(&j, ']');
	json_end(&j, '}');
	return EXIT_SUCCESS;
}

/*
 * Any IA of this provider reports all fabrics of the machine and all settings. @show_it returns the
 * exit status, or -1 for an IA of another provider.
 */
static int show_one(const struct opts *opts, const struct registry *r,
		    int (*show_it)(const struct opts *opts, const struct ia *ia))
{
	char err[REASON_MAX] = "";
	struct ia ia;
	int i, status;

	for (i = 0; i < r->n; i++) {
		if (!is_selected(opts, r, i) || ia_open(&r->info[i], &ia, err, sizeof(err)))
			continue;
		status = show_it(opts, &ia);
		dat_ia_close(ia.handle, DAT_CLOSE_GRACEFUL_FLAG);
		if (status >= 0)
			return status;
	}
	fprintf(stderr, "datinfo: no IA on libfabric could be opened to query the %s%s%s\n",
		opts->settings ? "settings" : "fabrics", err[0] ? ": " : "", err);
	return EXIT_FAILURE;
}

/* --- command line ------------------------------------------------------- */

enum {
	OPT_CONF = 256,
	OPT_APPEND,
	OPT_CAPS,
	OPT_COUNTERS,
	OPT_DOCTOR,
	OPT_EXPLAIN,
	OPT_SETTINGS,
};

static const struct option long_options[] = {
	{ "device", required_argument, NULL, 'D' },
	{ "list", no_argument, NULL, 'l' },
	{ "all", no_argument, NULL, 'a' },
	{ "counters", required_argument, NULL, OPT_COUNTERS },
	{ "conf", no_argument, NULL, OPT_CONF },
	{ "append", no_argument, NULL, OPT_APPEND },
	{ "capabilities", no_argument, NULL, OPT_CAPS },
	{ "doctor", no_argument, NULL, OPT_DOCTOR },
	{ "port", required_argument, NULL, 'p' },
	{ "explain", required_argument, NULL, OPT_EXPLAIN },
	{ "settings", no_argument, NULL, OPT_SETTINGS },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static int parse_pid(const char *text, pid_t *pid)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || end == text || *end || v < 1 || v > INT_MAX) {
		fprintf(stderr, "datinfo: --counters takes a process ID, not \"%s\"\n", text);
		return EXIT_USAGE;
	}
	*pid = (pid_t)v;
	return -1;
}

static int parse_port(const char *text, unsigned *port)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (end == text || *end || !v || v > UINT16_MAX) {
		fprintf(stderr, "datinfo: --port takes a number from 1 to %u, not \"%s\"\n",
			UINT16_MAX, text);
		return EXIT_USAGE;
	}
	*port = (unsigned)v;
	return -1;
}

static int show_counters(pid_t pid)
{
	if (count_show(stdout, pid))
		return EXIT_SUCCESS;
	fprintf(stderr, "datinfo: process %d reports no counters\n", (int)pid);
	return EXIT_FAILURE;
}

static int show_explained(const char *text)
{
	if (explain(stdout, text))
		return EXIT_SUCCESS;
	fprintf(stderr,
		"datinfo: DAT %s has no event, return code or value of a field \"%s\"; hexadecimal "
		"numbers begin with 0x\n",
		API_TEXT, text);
	return EXIT_USAGE;
}

/* Returns the option that prints text alone, or NULL. */
static const char *without_json(const struct opts *opts)
{
	return opts->doctor ? "doctor" :
	       opts->counters ? "counters" :
	       opts->explain ? "explain" :
	       opts->conf && !opts->settings ? "conf" : NULL;
}

/* Returns -1 to continue, else the exit status. */
static int parse(int argc, char **argv, struct opts *opts)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "D:lajp:hV", long_options, NULL)) != -1) {
		switch (opt) {
		case 'D':
			opts->device = optarg;
			break;
		case 'l':
			opts->list = true;
			break;
		case 'a':
			opts->all = true;
			break;
		case OPT_COUNTERS:
			if (parse_pid(optarg, &opts->counters) >= 0)
				return EXIT_USAGE;
			break;
		case OPT_CONF:
			opts->conf = true;
			break;
		case OPT_APPEND:
			opts->append = true;
			break;
		case OPT_CAPS:
			opts->caps = true;
			break;
		case OPT_DOCTOR:
			opts->doctor = true;
			break;
		case 'p':
			if (parse_port(optarg, &opts->peer.port) >= 0)
				return EXIT_USAGE;
			break;
		case OPT_EXPLAIN:
			opts->explain = optarg;
			break;
		case OPT_SETTINGS:
			opts->settings = true;
			break;
		case 'j':
			opts->json = true;
			break;
		case 'h':
			fputs(help_text, stdout);
			return EXIT_SUCCESS;
		case 'V':
			printf("datinfo %s, DAT %s\n", PACKAGE_VERSION, API_TEXT);
			return EXIT_SUCCESS;
		default:
			return EXIT_USAGE;
		}
	}
	if (opts->caps && !opts->device && optind < argc)
		opts->device = argv[optind++];
	if (opts->doctor && optind < argc)
		opts->peer.host = argv[optind++];
	if (opts->append && !opts->conf) {
		fputs("datinfo: --append needs --conf\n", stderr);
		return EXIT_USAGE;
	}
	if (opts->all && !opts->list) {
		fputs("datinfo: --all needs --list\n", stderr);
		return EXIT_USAGE;
	}
	if (opts->json && without_json(opts)) {
		fprintf(stderr, "datinfo: --%s prints no JSON\n", without_json(opts));
		return EXIT_USAGE;
	}
	if (optind == argc)
		return -1;
	fprintf(stderr, "datinfo: unexpected argument \"%s\" (see datinfo --help)\n", argv[optind]);
	return EXIT_USAGE;
}

/* The path of dat.conf, for the process after execv() in prepare_conf(). */
#define CONF_VARIABLE "DATINFO_CONF"

/*
 * Makes an IA of this provider available to opts->conf, whatever dat.conf has. OFED's registry has
 * read dat.conf before main(), so with it the program starts again.
 */
static bool prepare_conf(struct opts *opts, char **argv)
{
	const char *path = secure_getenv(CONF_VARIABLE);

	opts->device = NULL;
	if (path) {
		snprintf(opts->path, sizeof(opts->path), "%s", path);
		return true;
	}
	conf_path(opts->path, sizeof(opts->path));
	if (conf_own_only(PROVIDER_DIR)) {
		if (!registry_is_another())
			return true;
		/* a privileged process ignores the variable, and would start again for ever */
		if (!setenv(CONF_VARIABLE, opts->path, 1) && !secure_getenv(CONF_VARIABLE))
			errno = EPERM;
		else
			execv("/proc/self/exe", argv);
	}
	fprintf(stderr, "datinfo: %s\n", strerror(errno));
	return false;
}

static bool run_doctor(const char *device, const struct doctor_peer *peer)
{
	const size_t width = wrap_width(stdout);
	FILE *lines = wrap_open(stdout, width < DOCTOR_WIDTH ? width : DOCTOR_WIDTH);
	bool works = doctor(lines, device, peer);

	wrap_close(lines, stdout);
	return works;
}

int main(int argc, char **argv)
{
	struct opts opts = { .device = NULL, .peer.port = DATPERF_PORT };
	struct registry registry = { .n = 0 };
	int status = parse(argc, argv, &opts);

	if (status >= 0)
		return status;
	if (opts.counters)
		return show_counters(opts.counters);
	if (opts.explain)
		return show_explained(opts.explain);
	if (opts.conf && !opts.settings && !prepare_conf(&opts, argv))
		return EXIT_FAILURE;
	if (opts.settings)
		reason_keep_level();
	else
		log_to_stderr();	/* from there come the reasons that are printed */
	if (opts.doctor)
		return run_doctor(opts.device, &opts.peer) ? EXIT_SUCCESS : EXIT_FAILURE;
	if (registry_read(&registry))
		status = EXIT_FAILURE;
	else if (opts.settings)
		status = show_one(&opts, &registry, settings_of);
	else if (opts.conf)
		status = show_one(&opts, &registry, conf_of);
	else
		status = show_all(&opts, &registry);
	free(registry.info);
	return status;
}

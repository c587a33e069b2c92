/* A client of NETCONF over SSH in C, libnetconf2's, against the server of the tests:
 *     netconf PORT PRIVATE_KEY KNOWN_HOST_KEY QUEUES
 * It learns every module from the server, so that libyang checks each answer and notification against
 * what the server says it implements. Ends with 1 where something is not as it has to be. */

#define _GNU_SOURCE

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libyang/libyang.h>
#include <nc_client.h>

#define WITHIN_MS 20000
#define IF "urn:ietf:params:xml:ns:yang:ietf-interfaces"
#define QUEUE "ietf-pfc-queue-telemetry"

static const char *known_host_key;
static unsigned complaints;

static void
failed(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

/* Whatever the library complains of is a fault of ours, until a test knows better. */
static void
said(const struct nc_session *session, NC_VERB_LEVEL level, const char *text)
{
    (void)session;
    if (level == NC_VERB_ERROR || level == NC_VERB_WARNING) {
        complaints++;
    }
    fprintf(stderr, "libnetconf2: %s\n", text);
}

static void
quiet(const char *where)
{
    if (complaints) {
        failed("%u complaints of the library %s, expected none", complaints, where);
    }
}

/* Takes the host key that the test made and no other. */
static int
host_key(const char *host, ssh_session session, void *unused)
{
    ssh_key key = NULL, known = NULL;
    int different;

    (void)host;
    (void)unused;
    if (ssh_get_server_publickey(session, &key)) {
        failed("no key of the host: %s", ssh_get_error(session));
    }
    if (ssh_pki_import_pubkey_file(known_host_key, &known)) {
        failed("%s: no public key", known_host_key);
    }
    different = ssh_key_cmp(key, known, SSH_KEY_CMP_PUBLIC);
    ssh_key_free(key);
    ssh_key_free(known);
    if (different) {
        failed("another host key than %s", known_host_key);
    }
    return 0;
}

/* Whether an element of this name is in an envelope, which no module describes. */
static int
has(const struct lyd_node *envelope, const char *name)
{
    const struct lyd_node *child;

    LY_LIST_FOR(lyd_child(envelope), child) {
        if (!strcmp(LYD_NAME(child), name)) {
            return 1;
        }
    }
    return 0;
}

/* The reply to a request; the envelope with an error where there is no output. */
static struct lyd_node *
reply(struct nc_session *session, struct nc_rpc *rpc, const char *name, struct lyd_node **envelope)
{
    struct lyd_node *output = NULL;
    NC_MSG_TYPE kind;
    uint64_t id;

    *envelope = NULL;
    if (!rpc || nc_send_rpc(session, rpc, WITHIN_MS, &id) != NC_MSG_RPC) {
        failed("%s was not sent", name);
    }
    /* Notifications that come meanwhile are kept for later. */
    do {
        kind = nc_recv_reply(session, rpc, id, WITHIN_MS, envelope, &output);
    } while (kind == NC_MSG_NOTIF);
    if (kind != NC_MSG_REPLY) {
        failed("%s: message %d, expected a reply", name, (int)kind);
    }
    nc_rpc_free(rpc);
    return output;
}

static struct lyd_node *
answered(struct nc_session *session, struct nc_rpc *rpc, const char *name)
{
    struct lyd_node *envelope;
    struct lyd_node *output = reply(session, rpc, name, &envelope);

    if (!output && !has(envelope, "ok")) {
        lyd_print_file(stderr, envelope, LYD_XML, 0);
        failed("%s was refused", name);
    }
    lyd_free_tree(envelope);
    quiet(name);
    return output;
}

static void
refused(struct nc_session *session, struct nc_rpc *rpc, const char *name, const char *tag)
{
    struct lyd_node *envelope;
    struct lyd_node *output = reply(session, rpc, name, &envelope);
    char *text = NULL;

    if (output || !has(envelope, "rpc-error")) {
        failed("%s was answered, expected %s", name, tag);
    }
    lyd_print_mem(&text, envelope, LYD_XML, 0);
    if (!text || !strstr(text, tag)) {
        failed("%s: %s, expected %s", name, text ? text : "nothing", tag);
    }
    free(text);
    lyd_free_tree(envelope);
}

/* What stands in a reply or notification as data. */
static const struct lyd_node *
data_of(const struct lyd_node *node, const char *name)
{
    const struct lyd_node_any *any = NULL;
    struct lyd_node *element;

    LYD_TREE_DFS_BEGIN(node, element) {
        if (!any && element->schema && (element->schema->nodetype & LYS_ANYDATA)) {
            any = (const struct lyd_node_any *)element;
        }
        LYD_TREE_DFS_END(node, element);
    }
    if (!any || any->value_type != LYD_ANYDATA_DATATREE || !any->value.tree) {
        failed("%s without data", name);
    }
    return any->value.tree;
}

static unsigned
count(const struct lyd_node *tree, const char *path)
{
    struct ly_set *found = NULL;
    unsigned number;

    if (lyd_find_xpath(tree, path, &found)) {
        failed("%s: not evaluated", path);
    }
    number = found->count;
    ly_set_free(found, NULL);
    return number;
}

static void
rows(struct lyd_node *output, const char *name, unsigned expected)
{
    unsigned found = count(data_of(output, name), "//" QUEUE ":interval-id");

    if (found != expected) {
        failed("%s: %u rows, expected %u", name, found, expected);
    }
    lyd_free_tree(output);
}

static struct lyd_node *
notified(struct nc_session *session, const char *name)
{
    struct lyd_node *envelope = NULL, *notification = NULL;
    NC_MSG_TYPE kind = nc_recv_notif(session, WITHIN_MS, &envelope, &notification);

    if (kind != NC_MSG_NOTIF || !notification) {
        failed("message %d, expected the notification %s", (int)kind, name);
    }
    lyd_free_tree(envelope);
    if (strcmp(notification->schema->name, name)) {
        failed("notification %s, expected %s", notification->schema->name, name);
    }
    quiet(name);
    return notification;
}

/* The interval that a change is about. What it holds stands below a node that is not in it, so that
 * libyang has no schema for it. */
static unsigned long
interval_of(struct lyd_node *change)
{
    const char *edits = "/ietf-yang-push:push-change-update/datastore-changes/yang-patch/edit";
    const struct lyd_node *row;
    struct lyd_node *element;
    unsigned long interval = 0;

    if (count(change, edits) != 1) {
        lyd_print_file(stderr, change, LYD_XML, 0);
        failed("%u edits in a change, expected one", count(change, edits));
    }
    row = data_of(change, "push-change-update");
    LYD_TREE_DFS_BEGIN(row, element) {
        if (!strcmp(LYD_NAME(element), "interval-id")) {
            interval = strtoul(lyd_get_value(element), NULL, 10);
        }
        LYD_TREE_DFS_END(row, element);
    }
    lyd_free_tree(change);
    return interval;
}

int
main(int argc, char **argv)
{
    struct nc_session *session;
    struct lyd_node *output, *notification;
    const struct lys_module *module;
    const struct lyd_node_any *any;
    const char *datastore = "ietf-datastores:operational";
    /* libyang leaves a container out of what it sends where nothing stands in it. */
    const char *all = "<interfaces xmlns=\"" IF "\"><interface/></interfaces>";
    const char *path = "/ietf-interfaces:interfaces";
    char *public_key;
    unsigned queues, found;
    uint32_t subscription;

    if (argc != 5) {
        fprintf(stderr, "usage: netconf PORT PRIVATE_KEY KNOWN_HOST_KEY QUEUES\n");
        return 2;
    }
    known_host_key = argv[3];
    queues = (unsigned)strtoul(argv[4], NULL, 10);
    if (asprintf(&public_key, "%s.pub", argv[2]) < 0) {
        return 2;
    }

    nc_client_init();
    nc_set_print_clb_session(said);
    nc_verbosity(NC_VERB_WARNING);
    nc_client_ssh_set_auth_hostkey_check_clb(host_key, NULL);
    nc_client_ssh_set_auth_pref(NC_SSH_AUTH_PASSWORD, -1);
    nc_client_ssh_set_auth_pref(NC_SSH_AUTH_INTERACTIVE, -1);
    if (nc_client_ssh_set_username("alice") || nc_client_ssh_add_keypair(public_key, argv[2])) {
        failed("the key was not taken");
    }
    free(public_key);
    session = nc_connect_ssh("127.0.0.1", (uint16_t)strtoul(argv[1], NULL, 10), NULL);
    if (!session) {
        failed("no session");
    }
    quiet("while it learned the modules");
    /* Both advertise 1.1: from here on it speaks in chunks, and takes nothing else. */
    if (!nc_session_get_version(session)) {
        failed("a session of version 1.0, expected 1.1");
    }
    module = ly_ctx_get_module_implemented(nc_session_get_ctx(session), QUEUE);
    if (!module) {
        failed("module " QUEUE " was not learned");
    }

    rows(answered(session, nc_rpc_get(all, 0, NC_PARAMTYPE_CONST), "get by subtree"), "get", queues);
    rows(answered(session, nc_rpc_get(path, 0, NC_PARAMTYPE_CONST), "get by XPath"), "get",
            queues);
    rows(answered(session, nc_rpc_get("/ietf-interfaces:interfaces/interface[name='Ethernet1']", 0,
            NC_PARAMTYPE_CONST), "get of one interface"), "get", 8);
    rows(answered(session, nc_rpc_get(all, NC_WD_ALL, NC_PARAMTYPE_CONST), "get with defaults"),
            "get", queues);
    rows(answered(session, nc_rpc_getdata(datastore, all, NULL, NULL, 0, 0, 0, 0, 0,
            NC_PARAMTYPE_CONST), "get-data by subtree"), "get-data", queues);
    rows(answered(session, nc_rpc_getdata(datastore, path, "false", NULL, 0, 0, 0, 0,
            NC_WD_TRIM, NC_PARAMTYPE_CONST), "get-data by XPath"), "get-data", queues);
    output = answered(session, nc_rpc_getdata(datastore, path, NULL, NULL, 0, 0, 2, 0, 0,
            NC_PARAMTYPE_CONST), "get-data of two levels");
    found = count(data_of(output, "get-data"), "/ietf-interfaces:interfaces/interface");
    if (found != queues / 8) {
        failed("get-data of two levels: %u interfaces, expected %u", found, queues / 8);
    }
    lyd_free_tree(output);
    output = answered(session, nc_rpc_getconfig(NC_DATASTORE_RUNNING, NULL, 0, NC_PARAMTYPE_CONST),
            "get-config");
    if (count(data_of(output, "get-config"), "/ietf-netconf-acm:nacm/rule-list") != 1) {
        failed("get-config without the access rules");
    }
    lyd_free_tree(output);
    output = answered(session, nc_rpc_getschema(QUEUE, NULL, "yang", NC_PARAMTYPE_CONST), "get-schema");
    any = (const struct lyd_node_any *)lyd_child(output);
    if (!any || !any->value.str || !strstr(any->value.str, "module " QUEUE " {")) {
        failed("get-schema without the module");
    }
    lyd_free_tree(output);
    refused(session, nc_rpc_getschema("nothing", NULL, NULL, NC_PARAMTYPE_CONST), "get-schema",
            "invalid-value");
    refused(session, nc_rpc_lock(NC_DATASTORE_RUNNING), "lock", "operation-not-supported");
    complaints = 0;

    output = answered(session, nc_rpc_establishpush_onchange(datastore, path, NULL, NULL, 0, 1, NULL,
            NC_PARAMTYPE_CONST), "establish-subscription");
    if (!lyd_child(output) || strcmp(lyd_child(output)->schema->name, "id")) {
        failed("establish-subscription without an id");
    }
    subscription = ((const struct lyd_node_term *)lyd_child(output))->value.uint32;
    lyd_free_tree(output);
    notification = notified(session, "push-update");
    rows(notification, "push-update", queues);
    /* The test begins to publish when it sees this. */
    puts("subscribed");
    fflush(stdout);
    for (unsigned long interval = 2; interval <= 3; interval++) {
        unsigned long told = interval_of(notified(session, "push-change-update"));
        if (told != interval) {
            failed("a change to interval %lu, expected %lu", told, interval);
        }
    }
    lyd_free_tree(answered(session, nc_rpc_resyncsub(subscription), "resync-subscription"));
    rows(notified(session, "push-update"), "push-update behind resync-subscription", queues);
    lyd_free_tree(answered(session, nc_rpc_deletesub(subscription), "delete-subscription"));
    refused(session, nc_rpc_deletesub(subscription), "delete-subscription again",
            "no-such-subscription");
    nc_session_free(session, NULL);
    nc_client_destroy();
    puts("good");
    return 0;
}

//! Every bound that an operator can set: name, default, legal range, and what it bounds.

/// One bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its key.
    pub name: &'static str,
    /// What holds where the file does not say.
    pub default: u64,
    /// The least legal value.
    pub min: u64,
    /// The greatest legal value.
    pub max: u64,
    /// What it bounds.
    pub bounds: &'static str,
}

macro_rules! limits {
    (
        $(#[$about:meta])*
        $limits:ident, $keys:ident beside [$($beside:literal),*]:
        $($name:ident = $default:expr, $min:expr, $max:expr, $bounds:literal;)+
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $limits {
            $(#[doc = concat!("Bounds ", $bounds, ".")] pub $name: u64,)+
        }

        impl $limits {
            /// All of them.
            pub const TABLE: &'static [Limit] = &[$(Limit {
                name: stringify!($name),
                default: $default,
                min: $min,
                max: $max,
                bounds: $bounds,
            }),+];

            /// Each with its value, in the order of the table.
            pub fn rows(&self) -> impl Iterator<Item = (&'static Limit, u64)> {
                Self::TABLE.iter().zip([$(self.$name),+])
            }

            /// Reads them out of a section; `None` where one is out of its range.
            pub(super) fn read(section: &super::section::Section<'_>) -> Option<Self> {
                // All are read before any is missed: every error is reported.
                let values = ($(section.number(stringify!($name), $min..=$max, $default),)+);
                let ($($name,)+) = values;
                Some(Self { $($name: $name?,)+ })
            }
        }

        impl Default for $limits {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        /// The keys of the section that the limits stand in.
        pub(super) const $keys: &[&str] = &[$($beside,)* $(stringify!($name)),+];
    };
}

/// This many contexts take tens of gigaoctets, and their index still fits into 32 bits.
const CONTEXTS_MAX: u64 = 100_000_000;

limits! {
    /// The bounds of the device side, keys of `[meter]`.
    // SEQ-10.3
    MeterLimits, METER_KEYS beside ["window", "when_full", "idle_timeout_s", "icrc"]:
    rules_max = 65_536, 1, 1_000_000,
        "streams and rules that this file provisions";
    contexts_max = 2_000_000, 1, CONTEXTS_MAX,
        "streams that are remembered, disabled ones among them";
    labels_octets_max = 1 << 30, 8, 1 << 40,
        "octets of window labels over all streams";
    report_id_max = u64::MAX, 1, u64::MAX,
        "the last report id of an epoch, whose report is the final one";
    finals_waiting_max = 1_000_000, 1, 100_000_000,
        "closed epochs that wait for the capture's drop counters to be read";
    mirror_sessions_max = 4_096, 1, 1_048_576,
        "mirror sessions whose sequence numbers are followed";
}

limits! {
    /// The bounds of an agent, keys of `[agent]`.
    // SEQ-10.3
    AgentLimits, AGENT_KEYS beside
        ["control_socket", "state_file", "metrics_listen", "user", "group"]:
    finals_queued_max = 100_000, 1, 100_000_000,
        "final reports of one Transport Session that wait for the collector";
    octets_queued_max = 1 << 20, 1 << 16, 1 << 30,
        "octets of one Transport Session that are serialised and not yet sent";
    batches_waiting_max = 64, 1, 65_536,
        "batches of frames that wait to be metered";
    connect_timeout_s = 10, 1, 300,
        "seconds to connect to a collector, TLS handshake included";
    stalled_timeout_s = 60, 1, 86_400,
        "seconds for which a collector may take nothing before its session is given up";
    reconnect_max_s = 60, 1, 86_400,
        "seconds between two attempts to connect";
    stop_timeout_s = 10, 1, 3_600,
        "seconds for the last reports to go out when the agent stops";
    control_connections_max = 8, 1, 1_024,
        "connections to the control socket at one time";
    streams_shown_max = 10_000, 1, 10_000_000,
        "streams that one answer on the control socket shows";
    metrics_connections_max = 8, 1, 1_024,
        "connections for metrics at one time; more wait";
    metrics_head_octets_max = 16_384, 8_192, 1 << 20,
        "octets of a request for metrics";
    metrics_timeout_s = 10, 1, 300,
        "seconds for a request for metrics to come, and for its answer to be taken, each";
}

limits! {
    /// The bounds of counters of PFC frames on a device, keys of `[pfc]`.
    // SEQ-10.3
    PfcLimits, PFC_KEYS beside ["poll_interval_ms", "instance_ids", "source", "classes"]:
    ports_max = 4_096, 1, 65_536,
        "ports of each source whose counters are followed";
    poll_timeout_ms = 1_000, 1, 600_000,
        "milliseconds for a poll of a database to be answered";
    stale_ms_max = 10_000, 1, 3_600_000,
        "milliseconds that a counter with a time stamp may be old, and for which readings may be late";
    missing_shown_max = 1_024, 0, 1_000_000,
        "counters of each source without a reading that status and metrics name";
}

limits! {
    /// The bounds of queue telemetry on a device, keys of `[queue]`.
    // SEQ-10.3
    QueueLimits, QUEUE_KEYS beside ["source"]:
    batches_behind_max = 1_024, 1, 65_536,
        "published batches of rows that who follows them may be behind before it misses some";
    rows_behind_max = 262_144, 1, 16_777_216,
        "rows in these batches, of all queues together, before it misses some";
    rows_per_second_max = 100_000, 1, 100_000_000,
        "rows that a source may complete in a second before it is read no further for a while";
    silent_timeout_s = 60, 1, 86_400,
        "seconds without an octet after which the connection of a source of events ends";
    bad_lines_in_a_row_max = 16, 1, 65_536,
        "lines in a row that are no events, the last of which ends the connection of their source";
    poll_timeout_ms = 1_000, 1, 600_000,
        "milliseconds for a poll of a switch's database to be answered";
    stale_ms_max = 10_000, 1, 3_600_000,
        "milliseconds for which a switch's database may not have been filled anew";
}

limits! {
    /// The bounds of what a device serves of its queue telemetry, keys of `[manage]`.
    // SEQ-10.3
    ManageLimits, MANAGE_KEYS beside
        ["read_default", "exec_default", "login", "group", "rules", "restconf", "netconf"]:
    connections_max = 1_280, 1, 65_536,
        "connections over HTTPS at one time, subscribers among them";
    head_octets_max = 16_384, 8_192, 1 << 20,
        "octets of the head of a request";
    body_octets_max = 65_536, 1_024, 16 << 20,
        "octets of the body of a request";
    request_timeout_s = 10, 1, 300,
        "seconds for a TLS handshake, for the head of a request and for its body, each";
    answer_timeout_s = 30, 1, 3_600,
        "seconds for an answer, or a notification, to be taken";
    answers_max = 4, 1, 1_024,
        "answers that are made at one time; more wait";
    subscriptions_max = 2_048, 1, 65_536,
        "subscriptions at one time";
    subscriptions_per_user_max = 1_024, 1, 65_536,
        "subscriptions of one user at one time";
    subscription_octets_max = 8 << 20, 1 << 16, 1 << 30,
        "octets of notifications that wait for one subscriber; more suspends it";
    subscriptions_octets_max = 256 << 20, 1 << 20, 1 << 40,
        "octets of notifications that wait for all subscribers, what many get alike counted once; \
         more suspends";
    filters_per_user_max = 64, 1, 65_536,
        "different filters of the subscriptions of one user";
    period_min_cs = 10, 1, 360_000,
        "hundredths of a second of the shortest period of a subscription";
    unread_timeout_s = 60, 1, 86_400,
        "seconds for which a subscription may be suspended, or wait for its reader at first";
    netconf_connections_max = 64, 1, 4_096,
        "SSH connections at one time";
    netconf_sessions_max = 64, 1, 4_096,
        "sessions of NETCONF at one time";
    netconf_message_octets_max = 1 << 20, 4_096, 64 << 20,
        "octets of a message of a NETCONF client";
    netconf_idle_timeout_s = 600, 1, 86_400,
        "seconds without a request after which a session without subscriptions is ended";
}

limits! {
    /// The bounds of the collector, keys of `[limits]`.
    // SEQ-7.10, SEQ-10.3
    CollectorLimits, LIMIT_KEYS beside []:
    sessions_max = 1_024, 1, 65_536,
        "Transport Sessions at one time";
    sessions_per_peer_max = 16, 1, 65_536,
        "Transport Sessions of one peer at one time";
    handshakes_max = 64, 1, 65_536,
        "connections whose TLS handshake is under way; one more ends the oldest";
    handshake_timeout_s = 10, 1, 300,
        "seconds for a TLS handshake";
    first_message_timeout_s = 30, 1, 3_600,
        "seconds for the first message of a Transport Session";
    session_idle_timeout_s = 900, 1, 86_400,
        "seconds without a whole message after which a Transport Session ends";
    messages_per_second_max = 100_000, 1, 10_000_000,
        "messages a second that are read from one Transport Session, more waiting in its socket";
    malformed_in_a_row_max = 16, 1, 65_536,
        "malformed messages one after the other, the last of which ends the Transport Session";
    domains_max = 64, 1, 65_536,
        "Observation Domains of one Transport Session";
    templates_max = 4_096, 1, 65_536,
        "templates of one Transport Session";
    template_fields_max = 1_024, 1, 65_535,
        "fields of one template";
    elements_learned_max = 1_024, 1, 32_767,
        "elements that one Transport Session describes by type records";
    epochs_max = 1_000_000, 1, 100_000_000,
        "epochs that are kept at a time for one Transport Session";
    epochs_all_max = 4_000_000, 1, 1_000_000_000,
        "epochs that are kept at a time over all Transport Sessions";
    closed_retention_s = 60, 1, 2_592_000,
        "seconds for which a closed epoch is kept, to notice what contradicts it";
    reports_waiting_max = 524_288, 1, 10_000_000,
        "results that wait for the store, half of them for their turn; no session is read while all do";
    pfc_counters_max = 65_536, 1, 10_000_000,
        "PFC counters of one Transport Session";
    pfc_counters_all_max = 1_048_576, 1, 1_000_000_000,
        "PFC counters that are kept at a time over all Transport Sessions";
    pfc_scope_octets_max = 256, 0, 65_535,
        "octets that a PFC record has in its scope beside the draft's fields, 10 of each field for its name";
    pfc_scope_octets_all_max = 4 << 20, 0, 1 << 30,
        "octets of that over all PFC counters of one Transport Session";
    pfc_link_gbps_max = 1_600, 0, 1_000_000,
        "Gb/s of the fastest link with a PFC counter, so how fast one can count; 0 for not known";
    pfc_history_interval_s = 60, 1, 86_400,
        "seconds between two stored readings of one PFC counter that are kept for charts";
    pfc_history_max = 256, 0, 100_000,
        "readings of one PFC counter that are kept for charts";
    pfc_metrics_max = 10_000, 0, 1_000_000,
        "PFC counters that /metrics shows";
    pfc_silent_after_s = 60, 1, 86_400,
        "seconds without a reading after which a PFC counter is not current, and not in /metrics";
    queue_devices_max = 256, 1, 4_096,
        "devices that queue telemetry is asked of";
    queue_octets_max = 4 << 20, 1 << 16, 64 << 20,
        "octets of one answer or notification of such a device";
    queue_notifications_per_second_max = 100_000, 1, 10_000_000,
        "notifications a second that are read from such a device, more waiting in its socket";
    queue_request_timeout_s = 30, 1, 600,
        "seconds for such a device to be connected to, and to answer, each";
    queue_silent_timeout_s = 60, 1, 3_600,
        "seconds without a notification after which such a device is asked whether it is there";
    queue_reconnect_max_s = 60, 1, 3_600,
        "seconds between two attempts to reach such a device";
    queue_queues_max = 4_096, 1, 1_000_000,
        "queues of one device; rows of more are refused";
    queue_epochs_max = 1_000, 2, 1_000_000,
        "epochs of one queue that are stored, the oldest going first";
    queue_rows_max = 36_000, 16, 100_000_000,
        "rows of one queue that are stored, the oldest going first";
    queue_rejections_max = 64, 0, 65_536,
        "rows of one epoch that were not accepted and are kept with the reason";
    queue_days_max = 7, 1, 36_500,
        "days for which rows of queues are stored";
    queue_aggregate_rows_max = 1_000_000, 1, 100_000_000,
        "rows of queues that one HTTP answer sums up, but for the first group";
    archive_octets_max = 64 << 30, 1 << 20, 1 << 50,
        "octets of the raw archive, the oldest file going first";
    archive_days_max = 90, 1, 36_500,
        "days for which the raw archive is stored";
    archive_segment_octets_max = 64 << 20, 1 << 17, 1 << 40,
        "octets of one file of the raw archive before it is compressed";
    archive_waiting_octets_max = 256 << 10, 1 << 16, 1 << 30,
        "octets of one Transport Session that wait in memory for the raw archive";
    results_days_max = 90, 1, 36_500,
        "days for which results are stored";
    results_octets_max = 16 << 30, 1 << 20, 1 << 50,
        "octets of the database, the oldest results going first";
    history_days_max = 7, 1, 36_500,
        "days for which readings for charts are stored";
    history_per_epoch_max = 256, 1, 1 << 20,
        "readings for charts of one epoch, the oldest going first";
    http_connections_max = 128, 1, 65_536,
        "HTTP connections at one time; one more ends the oldest whose reader is not known yet";
    http_head_octets_max = 16_384, 8_192, 1 << 20,
        "octets of the head of an HTTP request";
    http_head_timeout_s = 15, 1, 3_600,
        "seconds for the next request of an HTTP connection, its TLS handshake among them";
    http_answer_timeout_s = 30, 1, 3_600,
        "seconds in which an answer has to be taken by its reader";
    http_queries_max = 4, 1, 256,
        "HTTP requests that read the store at one time";
    http_queries_waiting_max = 64, 1, 65_536,
        "HTTP requests that wait to read the store, more being refused";
    http_query_timeout_ms = 10_000, 1, 600_000,
        "milliseconds for an HTTP request to wait for the store and read it";
    http_page_max = 1_000, 1, 100_000,
        "rows of one page of an HTTP answer";
}

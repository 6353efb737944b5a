//! How long a server's layers took, by the server's own word.
//!
//! Constraint: the peer's values are not trusted. A value that is no time makes the whole timing `malformed`, and the
//! rest of the message is not affected.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Nanos;

/// How long the layers of a server took for one call, as the server itself says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerTiming {
    /// HTTP, session checks, JSON-RPC parsing, writing the reply.
    #[serde(rename = "transport_ns")]
    pub transport: Nanos,
    /// Name lookup, permissions, validation, serialisation.
    #[serde(rename = "dispatch_ns")]
    pub dispatch: Nanos,
    /// The tool's own code.
    #[serde(rename = "service_ns")]
    pub service: Nanos,
    /// Something in it was no time: negative, no number, past all bounds. Nothing of it is to be believed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub malformed: bool,
}

/// Metrics of `Server-Timing` headers that are read.
const MOST_METRICS: usize = 64;
/// A day: no call takes longer, and sums of such times have room.
const LONGEST_NS: f64 = 86_400e9;

impl ServerTiming {
    /// The sum of the layers.
    #[must_use]
    pub fn total(&self) -> Nanos {
        self.transport + self.dispatch + self.service
    }

    /// Reads the member of a result's `_meta`, JSON text. `None` where it is no object, or one with none of the layers.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct TimingMembers<'a> {
            #[serde(borrow, default)]
            transport_ns: Option<&'a RawValue>,
            #[serde(borrow, default)]
            dispatch_ns: Option<&'a RawValue>,
            #[serde(borrow, default)]
            service_ns: Option<&'a RawValue>,
        }
        // serde would take an array for an object.
        if !text.trim_start().starts_with('{') {
            return None;
        }
        let Ok(members) = serde_json::from_str::<TimingMembers<'_>>(text) else {
            // A layer is told twice.
            return Some(Self { malformed: true, ..Self::default() });
        };
        let mut timing = Self::default();
        let told = [members.transport_ns, members.dispatch_ns, members.service_ns];
        for (at, text) in told.into_iter().enumerate() {
            if let Some(text) = text {
                timing.set_layer(at, text.get().parse().ok());
            }
        }
        told.iter().any(Option::is_some).then_some(timing)
    }

    /// Reads the values of the standard `Server-Timing` header (W3C Server Timing) with the metrics `transport`, `dispatch`
    /// and `service`, `dur` in milliseconds. `None` where none of the three has one.
    #[must_use]
    pub fn from_headers<'a>(values: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut timing = Self::default();
        let mut found = false;
        let metrics = values.into_iter().flat_map(|value| value.split(','));
        for (number, metric) in metrics.enumerate() {
            if number == MOST_METRICS {
                timing.malformed = true;
                break;
            }
            let mut parts = metric.split(';').map(str::trim);
            let layer = match parts.next() {
                Some("transport") => 0,
                Some("dispatch") => 1,
                Some("service") => 2,
                _ => continue,
            };
            if let Some(text) = parts.find_map(|part| part.strip_prefix("dur=")) {
                let millis: Option<f64> = text.trim_matches('"').parse().ok();
                timing.set_layer(layer, millis.map(|millis| millis * 1e6));
                found = true;
            }
        }
        found.then_some(timing)
    }

    /// `layer` counts from 0 in the order of the members.
    fn set_layer(&mut self, layer: usize, nanos: Option<f64>) {
        match nanos {
            Some(nanos) if (0.0..=LONGEST_NS).contains(&nanos) => {
                let layers = [&mut self.transport, &mut self.dispatch, &mut self.service];
                *layers[layer] = Nanos(nanos.round() as u64);
            }
            _ => self.malformed = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MALFORMED: ServerTiming =
        ServerTiming { transport: Nanos(0), dispatch: Nanos(0), service: Nanos(0), malformed: true };

    #[test]
    fn a_results_member_is_read_and_strangers_in_it_are_passed_over() {
        let timing = ServerTiming::from_json(r#"{"service_ns":3.4,"queue_ns":-1,"transport_ns":1}"#).unwrap();
        assert_eq!((timing.transport, timing.dispatch, timing.service), (Nanos(1), Nanos(0), Nanos(3)));
        assert!(!timing.malformed);
        // The key's own `true` echoed, and an object that says nothing of layers.
        for nothing in ["true", "null", "[1,2,3]", "{}", r#"{"queue_ns":7}"#] {
            assert_eq!(ServerTiming::from_json(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn what_is_no_time_is_malformed() {
        for wrong in ["-1", "\"5\"", "true", "[]", "{}", "1e300", "1e400", "86400000000001"] {
            let text = format!(r#"{{"service_ns":{wrong}}}"#);
            assert_eq!(ServerTiming::from_json(&text), Some(MALFORMED), "{wrong}");
        }
        assert_eq!(ServerTiming::from_json(r#"{"service_ns":1,"service_ns":2}"#), Some(MALFORMED));
        for wrong in ["-1", "nan", "inf", "x", "", "1e300"] {
            let text = format!("service;dur={wrong}");
            assert_eq!(ServerTiming::from_headers([text.as_str()]), Some(MALFORMED), "{wrong}");
        }
    }

    #[test]
    fn the_server_timing_header_is_read_by_layer_and_strangers_are_passed_over() {
        let timing = ServerTiming::from_headers(["cache;desc=\"x\", transport;dur=0.5", "service;desc=tool;dur=2"]);
        let timing = timing.unwrap();
        assert_eq!((timing.transport, timing.service), (Nanos::from_micros(500), Nanos::from_millis(2)));
        assert_eq!(ServerTiming::from_headers(["db;dur=3"]), None);
    }

    fn is_bounded(timing: ServerTiming) -> bool {
        [timing.transport, timing.dispatch, timing.service].iter().all(|layer| layer.0 <= LONGEST_NS as u64)
    }

    proptest! {
        #[test]
        fn whatever_is_told_is_bounded(
            text in r#"\{?("(transport|dispatch|service|x)_ns" ?: ?(-?[0-9]{0,25}(\.[0-9e+-]{0,5})?|null|"[^"]{0,3}"|\[\]),?){0,5}\}?"#,
            header in r#"((transport|dispatch|service|db) ?;? ?(dur=)?"?(-?[0-9.e+-]{0,25}|nan|inf)"? ?[,;]?){0,8}"#,
        ) {
            prop_assert!(ServerTiming::from_json(&text).is_none_or(is_bounded));
            prop_assert!(ServerTiming::from_headers([header.as_str(), "service;dur=1"]).is_some_and(is_bounded));
        }
    }

    #[test]
    fn thousands_of_metrics_are_not_read_to_their_end() {
        let many = "db;dur=1,".repeat(10_000);
        assert!(ServerTiming::from_headers([format!("service;dur=1,{many}").as_str()]).unwrap().malformed);
        // All of them strangers: nothing is told.
        assert_eq!(ServerTiming::from_headers([format!("{many}service;dur=1").as_str()]), None);
    }
}

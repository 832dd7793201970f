//! How many calls there are, how they end and how long they take: one histogram, by method, status and reason.

use std::time::Duration;

use opentelemetry::metrics::{Histogram, Meter};
use opentelemetry::{KeyValue, global};
use steward_proto::methods;
use tonic::Code;

/// What every server has beside the contract.
const BUILTIN: [&str; 4] = [
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/List",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
];

/// Stands for every method that does not exist, so that callers cannot make up label values or span names.
pub(super) const NO_METHOD: &str = "_OTHER";

/// The instruments of a server's edge.
#[derive(Debug, Clone)]
pub(super) struct CallMetrics {
    duration: Histogram<f64>,
}

impl CallMetrics {
    /// On the meter of the process, which counts nothing unless a main has installed telemetry.
    pub(super) fn of_process() -> Self {
        Self::new(&global::meter("steward.rpc"))
    }

    fn new(meter: &Meter) -> Self {
        Self {
            duration: meter
                .f64_histogram("rpc.server.call.duration")
                .with_description("Time from a call's arrival to its end, for a stream to its last message.")
                .with_unit("s")
                .with_boundaries(vec![
                    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
                ])
                .build(),
        }
    }

    /// `reason` is that of the error contract, a closed list.
    pub(super) fn ended(&self, method: &'static str, code: Code, reason: Option<&str>, took: Duration) {
        let common = || {
            [
                KeyValue::new("rpc.system.name", "grpc"),
                KeyValue::new("rpc.method", method),
                KeyValue::new("rpc.response.status_code", word(code)),
            ]
        };
        if code == Code::Ok {
            self.duration.record(took.as_secs_f64(), &common());
            return;
        }
        let [system, method, status] = common();
        let error = KeyValue::new("error.type", reason.unwrap_or(word(code)).to_owned());
        self.duration
            .record(took.as_secs_f64(), &[system, method, status, error]);
    }
}

/// `steward.memory.v1.MemoryService/Apply` for the path of a method that exists.
pub(super) fn method_name(path: &str) -> &'static str {
    let builtin = || BUILTIN.into_iter().find(|known| *known == path);
    let known = methods::find(path).map(|method| method.path).or_else(builtin);
    known.map_or(NO_METHOD, |path| path.trim_start_matches('/'))
}

/// The name of a status code in the contract, for example `PERMISSION_DENIED`.
pub const fn word(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_cannot_make_up_names() {
        let apply = "steward.memory.v1.MemoryService/Apply";
        assert_eq!(method_name(&format!("/{apply}")), apply);
        assert_eq!(
            method_name("/grpc.health.v1.Health/Check"),
            "grpc.health.v1.Health/Check"
        );
        assert_eq!(method_name("/steward.memory.v1.MemoryService/sk-secret"), NO_METHOD);
        assert_eq!(method_name("/grpc.health.v1.Health/sk-secret"), NO_METHOD);
        assert_eq!(method_name("/"), NO_METHOD);
    }
}

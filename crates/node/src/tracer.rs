//! Counts system calls of other programs (core's trace/) for `manycore trace`.

use crate::error::{Result, to_js};
use manycore_core::trace::{self, Method, OwnTimeTaken};
use napi_derive::napi;

/// One call of one record; times in nanoseconds.
#[napi(object)]
pub struct TracedCall {
    pub number: u32,
    pub count: f64,
    pub errors: f64,
    pub took_ns: f64,
    pub blocked_ns: f64,
}

/// A thread, or with `tid` 0 all child processes of one name.
#[napi(object)]
pub struct TracedRecord {
    pub pid: u32,
    pub tid: u32,
    pub is_ended: bool,
    pub is_starting: bool,
    pub tasks: f64,
    pub run_ns: f64,
    pub name: String,
    pub calls: Vec<TracedCall>,
}

#[napi]
pub struct NativeTracer {
    tracer: Option<trace::Tracer>,
    own_time: Option<OwnTimeTaken>,
}

#[napi]
impl NativeTracer {
    #[napi(factory)]
    pub fn start(
        #[napi(ts_arg_type = "'ebpf' | 'raw'")] method: String,
        pids: Vec<u32>,
        per_thread_names: Vec<String>,
    ) -> Result<NativeTracer> {
        let method = if method == "raw" { Method::Raw } else { Method::Ebpf };
        let tracer = trace::Tracer::start(method, &pids, &per_thread_names).map_err(to_js)?;
        Ok(NativeTracer { tracer: Some(tracer), own_time: None })
    }

    #[napi]
    pub fn follow(&mut self, pid: u32) -> Result<()> {
        self.tracer.as_mut().map_or(Ok(()), |tracer| tracer.follow(pid)).map_err(to_js)
    }

    #[napi]
    pub fn unfollow(&mut self, pid: u32) -> Result<()> {
        self.tracer.as_mut().map_or(Ok(()), |tracer| tracer.unfollow(pid)).map_err(to_js)
    }

    #[napi]
    pub fn read(&self) -> Result<Vec<TracedRecord>> {
        let records = self.tracer.as_ref().map_or(Ok(Vec::new()), |tracer| tracer.read());
        Ok(records.map_err(to_js)?.into_iter().map(record_of).collect())
    }

    /// Makes the kernel measure the time of its programs from now on, or ends that.
    #[napi]
    pub fn take_own_time(&mut self, is_taken: bool) -> Result<()> {
        self.own_time = match (&self.tracer, is_taken) {
            (Some(tracer), true) => Some(tracer.take_own_time().map_err(to_js)?),
            _ => None,
        };
        Ok(())
    }

    /// Measured time in nanoseconds.
    #[napi]
    pub fn own_time_ns(&self) -> Result<f64> {
        let own = self.tracer.as_ref().map_or(Ok(0), |tracer| tracer.own_time_ns());
        own.map(|ns| ns as f64).map_err(to_js)
    }

    /// Ends the counting; nothing can be read afterwards.
    #[napi]
    pub fn close(&mut self) {
        self.own_time = None;
        self.tracer = None;
    }
}

fn record_of(record: trace::RecordReading) -> TracedRecord {
    TracedRecord {
        pid: record.pid,
        tid: record.tid,
        is_ended: record.is_ended,
        is_starting: record.is_starting,
        tasks: record.tasks as f64,
        run_ns: record.run_ns as f64,
        name: record.name,
        calls: record.calls.into_iter().map(call_of).collect(),
    }
}

fn call_of(call: trace::CallReading) -> TracedCall {
    TracedCall {
        number: call.number,
        count: call.count as f64,
        errors: call.errors as f64,
        took_ns: call.took_ns as f64,
        blocked_ns: call.blocked_ns as f64,
    }
}

//! How loaded something is that serves requests.
//!
//! The time during which it had any request, over the time that passed, is its utilisation;
//! the sum of the times that all requests were under way, over the same, is how many there
//! were on the average (Little's law): beyond what it serves at once they wait.

/// The load of one server since it began.
#[derive(Clone, Debug, Default)]
pub struct Load {
    under_way: u64,
    since_ns: u64,
    requests: u64,
    busy_ns: u64,
    waited_ns: u64,
}

/// What a server has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served {
    /// Requests that were made.
    pub requests: u64,
    /// Nanoseconds during which at least one was under way.
    pub busy_ns: u64,
    /// Nanoseconds that each was under way, together.
    pub waited_ns: u64,
}

impl Load {
    /// A server without requests.
    pub const fn new() -> Self {
        Self {
            under_way: 0,
            since_ns: 0,
            requests: 0,
            busy_ns: 0,
            waited_ns: 0,
        }
    }

    /// A request is made.
    pub fn begin(&mut self, now_ns: u64) {
        self.pass(now_ns);
        self.requests += 1;
        self.under_way += 1;
    }

    /// A request is answered.
    pub fn end(&mut self, now_ns: u64) {
        self.pass(now_ns);
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// What it has done up to `now_ns`.
    pub fn read(&mut self, now_ns: u64) -> Served {
        self.pass(now_ns);
        Served {
            requests: self.requests,
            busy_ns: self.busy_ns,
            waited_ns: self.waited_ns,
        }
    }

    fn pass(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.since_ns);
        self.since_ns += passed_ns;
        if self.under_way > 0 {
            self.busy_ns += passed_ns;
            self.waited_ns += passed_ns * self.under_way;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;
    use crate::random::next;

    #[test]
    fn time_with_requests_is_busy_and_each_request_waits_for_itself() {
        let mut load = Load::new();
        load.begin(100);
        load.begin(110);
        load.end(130);
        load.end(150);
        let served = Served {
            requests: 2,
            busy_ns: 50,
            waited_ns: 70,
        };
        assert_eq!(load.read(1000), served);
    }

    #[test]
    fn busy_time_never_passes_the_clock_and_waits_are_those_of_each_request() {
        for start in 0..100 {
            let (mut seed, mut now, mut load) = (start, 0, Load::new());
            let (mut begun, mut waited_ns) = (Vec::new(), 0);
            for _ in 0..200 {
                now += next(&mut seed) % 1000;
                if next(&mut seed).is_multiple_of(2) {
                    load.begin(now);
                    begun.push(now);
                } else if let Some(at) = begun.pop() {
                    load.end(now);
                    waited_ns += now - at;
                }
            }
            let open_ns: u64 = begun.iter().map(|at| now - at).sum();
            let served = load.read(now);
            assert_eq!(served.waited_ns, waited_ns + open_ns, "seed {start}");
            assert!(served.busy_ns <= now, "seed {start}");
        }
    }
}

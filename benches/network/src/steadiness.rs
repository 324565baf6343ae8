//! Whether something goes on evenly: times of single events, and events of each second.

use std::collections::BTreeMap;

/// The middle and the slow end of some times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Half are not slower.
    pub median: f64,
    /// 99 of 100 are not slower.
    pub p99: f64,
}

impl Spread {
    /// None if there are no times.
    pub fn of(mut times: Vec<f64>) -> Option<Self> {
        times.sort_by(f64::total_cmp);
        let last = times.len().checked_sub(1)?;
        Some(Self {
            median: times[last / 2],
            p99: times[last * 99 / 100],
        })
    }
}

/// The rate of each whole second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// The middle one.
    pub median: f64,
    /// The slowest.
    pub min: f64,
    /// The fastest.
    pub max: f64,
}

impl Rates {
    /// From the events of each second. The first and the last second are not whole ones and
    /// do not count; one without an event does. None if there is no whole second.
    pub fn of(events: &BTreeMap<u64, u32>) -> Option<Self> {
        let (first, last) = (*events.first_key_value()?.0, *events.last_key_value()?.0);
        let seconds = first + 1..last;
        let rates = seconds.map(|second| events.get(&second).map_or(0.0, |&count| count.into()));
        let mut rates: Vec<f64> = rates.collect();
        rates.sort_by(f64::total_cmp);
        Some(Self {
            median: *rates.get(rates.len() / 2)?,
            min: *rates.first()?,
            max: *rates.last()?,
        })
    }

    /// How far the worst second is from the median, in percent of it.
    pub fn worst_deviation_percent(&self) -> f64 {
        (self.max - self.median).max(self.median - self.min) / self.median * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_without_events_is_the_slowest() {
        let events = BTreeMap::from([(10, 3), (11, 100), (12, 110), (14, 105), (15, 1)]);
        let rates = Rates::of(&events).expect("whole seconds");
        assert_eq!((rates.median, rates.min, rates.max), (105.0, 0.0, 110.0));
        assert_eq!(rates.worst_deviation_percent(), 100.0);
    }

    #[test]
    fn parts_of_seconds_have_no_rate() {
        assert_eq!(Rates::of(&BTreeMap::from([(10, 3), (11, 100)])), None);
        assert_eq!(Rates::of(&BTreeMap::new()), None);
    }

    #[test]
    fn one_slow_time_of_a_hundred_is_not_the_median() {
        let mut times = vec![1.0; 198];
        times.extend([50.0, 60.0]);
        let spread = Spread::of(times).expect("times");
        assert_eq!((spread.median, spread.p99), (1.0, 1.0));
        assert_eq!(Spread::of(vec![]), None);
    }
}

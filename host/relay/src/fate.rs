//! What happens to a frame, as the weather and the seed have it.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// How bad a direction is. Chances are parts of a million.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weather {
    /// Frames lost.
    pub loss_ppm: u32,
    /// Frames that arrive twice.
    pub duplication_ppm: u32,
    /// Copies that take a detour, so that later ones overtake them.
    pub reordering_ppm: u32,
    /// Copies with a wrong bit.
    pub corruption_ppm: u32,
    /// Time that a frame takes at least.
    pub delay: Duration,
    /// The longest detour.
    pub detour: Duration,
    /// Bytes a second.
    pub bandwidth: u64,
    /// Bytes that may wait for their turn; a frame more is lost.
    pub queue_bytes: u64,
}

impl Weather {
    /// A network without faults.
    pub const FAIR: Self = Self {
        loss_ppm: 0,
        duplication_ppm: 0,
        reordering_ppm: 0,
        corruption_ppm: 0,
        delay: Duration::ZERO,
        detour: Duration::ZERO,
        bandwidth: 125_000_000,
        queue_bytes: 1 << 20,
    };
}

/// What one copy of a frame suffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Copy {
    /// How much longer it takes than the shortest way.
    pub detour: Duration,
    /// A number that chooses the bit to turn over.
    pub wrong_bit: Option<u32>,
}

/// What a frame suffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is lost.
    Lost,
    /// It arrives.
    Arrives {
        /// The frame.
        first: Copy,
        /// The same frame once more.
        second: Option<Copy>,
    },
}

/// The fates of all frames of a direction.
#[derive(Clone, Debug)]
pub struct Fates {
    weather: Weather,
    random: ChaCha8Rng,
}

/// Words of chance set apart for each frame, whether it needs them or not.
const WORDS: u64 = 16;

impl Fates {
    /// Of one of the directions that share a seed.
    pub fn new(seed: u64, direction: u64, weather: Weather) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(direction);
        Self { weather, random }
    }

    /// The fate of frame `number`.
    pub fn of(&mut self, number: u64) -> Fate {
        self.random
            .set_word_pos(u128::from(number) * u128::from(WORDS));
        let weather = self.weather;
        if self.chance(weather.loss_ppm) {
            return Fate::Lost;
        }
        let is_doubled = self.chance(weather.duplication_ppm);
        let first = self.copy();
        let second = is_doubled.then(|| self.copy());
        Fate::Arrives { first, second }
    }

    fn copy(&mut self) -> Copy {
        let weather = self.weather;
        let has_detour = self.chance(weather.reordering_ppm);
        let part = f64::from(self.random.next_u32()) / f64::from(u32::MAX);
        let is_wrong = self.chance(weather.corruption_ppm);
        let bit = self.random.next_u32();
        Copy {
            detour: if has_detour {
                weather.detour.mul_f64(part)
            } else {
                Duration::ZERO
            },
            wrong_bit: is_wrong.then_some(bit),
        }
    }

    fn chance(&mut self, ppm: u32) -> bool {
        (u64::from(self.random.next_u32()) * 1_000_000) >> 32 < u64::from(ppm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORM: Weather = Weather {
        loss_ppm: 100_000,
        duplication_ppm: 200_000,
        reordering_ppm: 300_000,
        corruption_ppm: 5_000,
        detour: Duration::from_millis(8),
        ..Weather::FAIR
    };

    #[test]
    fn the_fate_of_a_frame_depends_on_seed_direction_and_number_alone() {
        let mut asked_in_order = Fates::new(7, 0, STORM);
        let fates: Vec<Fate> = (0..100).map(|number| asked_in_order.of(number)).collect();
        let mut asked_once = Fates::new(7, 0, STORM);
        assert_eq!(asked_once.of(93), fates[93]);
        let others = |seed, direction| -> Vec<Fate> {
            let mut fates = Fates::new(seed, direction, STORM);
            (0..100).map(|number| fates.of(number)).collect()
        };
        assert_eq!(others(7, 0), fates);
        assert_ne!(others(8, 0), fates);
        assert_ne!(others(7, 1), fates);
    }

    #[test]
    fn faults_are_as_frequent_as_the_weather_says() {
        const FRAMES: u64 = 100_000;
        let mut fates = Fates::new(1, 0, STORM);
        let (mut lost, mut doubled, mut detours, mut wrong) = (0, 0, 0, 0);
        for number in 0..FRAMES {
            let Fate::Arrives { first, second } = fates.of(number) else {
                lost += 1;
                continue;
            };
            assert!(first.detour <= STORM.detour);
            doubled += u64::from(second.is_some());
            detours += u64::from(!first.detour.is_zero());
            wrong += u64::from(first.wrong_bit.is_some());
        }
        let arrived = FRAMES - lost;
        let is_near = |seen: u64, of: u64, ppm: u32| {
            let wanted = of * u64::from(ppm) / 1_000_000;
            seen.abs_diff(wanted) < wanted / 10
        };
        assert!(is_near(lost, FRAMES, STORM.loss_ppm), "{lost} lost");
        assert!(
            is_near(doubled, arrived, STORM.duplication_ppm),
            "{doubled} doubled"
        );
        assert!(
            is_near(detours, arrived, STORM.reordering_ppm),
            "{detours} detours"
        );
        assert!(
            is_near(wrong, arrived, STORM.corruption_ppm),
            "{wrong} wrong"
        );
    }
}

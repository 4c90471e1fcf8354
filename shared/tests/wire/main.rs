//! The wire, byte for byte: what stands in `golden/` is what peers of other builds send and expect.

mod arbitrary;
mod golden;
mod round_trip;
mod tolerance;

//! Calls through a whole server, each in the same process and over a real port. The handlers are fakes that do what the
//! request names; everything around them is what every service has.

#[cfg(test)]
mod access;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod log;
#[cfg(test)]
mod port;

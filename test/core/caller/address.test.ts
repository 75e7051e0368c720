import { BlockList } from 'node:net';
import { expect, test } from 'vitest';
import { callerAddress, forwardedAddress } from '../../../src/core/caller/address.ts';

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0DB8:0001:0002::9', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['unknown', 'unknown'],
])('a caller at %s is counted as %s', (address, counted) => {
  expect(callerAddress(address)).toBe(counted);
});

test.each([
  ['a stranger’s word about himself is not heard', '203.0.113.5', '198.51.100.1', '203.0.113.5'],
  ['what a trusted proxy says is', '10.0.0.1', '198.51.100.1', '198.51.100.1'],
  ['only the part that trusted proxies wrote', '10.0.0.1', '1.1.1.1, 198.51.100.1, 10.0.0.2', '198.51.100.1'],
  ['with a port, or in brackets', '10.0.0.1', '198.51.100.1:4711', '198.51.100.1'],
  ['IPv6 in brackets', '10.0.0.1', '[2001:db8::7]:443', '2001:db8::7'],
  ['a proxy that says nothing is the caller', '10.0.0.1', null, '10.0.0.1'],
  ['nor does rubbish make one', '10.0.0.1', 'unknown', '10.0.0.1'],
  ['a trusted proxy over a mapped address', '::ffff:10.0.0.1', '198.51.100.1', '198.51.100.1'],
])('the address of a caller behind proxies: %s', (_, peer, forwarded, address) => {
  const trusted = new BlockList();
  trusted.addSubnet('10.0.0.0', 8, 'ipv4');
  expect(forwardedAddress(peer, forwarded, trusted)).toBe(address);
});

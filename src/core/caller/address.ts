/** The address of a caller: the peer of the connection, or the address that a trusted proxy reports. */
import { BlockList, isIP } from 'node:net';
import type { ParsedSetting } from '../settings/setting.ts';

/**
 * One name for each caller. An IPv6 address is reduced to its first 64 bits, because a caller with one such address has all of them.
 * IPv4 addresses and other texts stay unchanged.
 */
export function callerAddress(address: string): string {
  const plain = withoutZone(unmapped(address));
  return isIP(plain) === 6 ? `${networkOf(plain)}::/64` : plain;
}

/**
 * The caller's address behind trusted proxies: the last address in `X-Forwarded-For` that is not a trusted proxy. Everything to its left
 * may be forged.
 */
export function forwardedAddress(peer: string, forwardedFor: string | null, trusted: BlockList): string {
  let address = withoutZone(unmapped(peer));
  const hops = (forwardedFor ?? '').split(',').map((hop) => withoutPort(hop.trim()));
  while (isAmong(trusted, address)) {
    const before = hops.pop();
    if (before === undefined || isIP(before) === 0) break;
    address = unmapped(before);
  }
  return address;
}

/** Whether the address is one of these proxies. */
export function isTrusted(address: string, trusted: BlockList | null): boolean {
  return trusted !== null && isAmong(trusted, withoutZone(unmapped(address)));
}

/** Parses addresses and networks, separated by commas: `10.0.0.0/8, 192.0.2.1, 2001:db8::/32`. */
export function parseProxies(text: string): ParsedSetting<BlockList> {
  const list = new BlockList();
  for (const part of text.split(',').map((one) => one.trim())) {
    const [address = '', bits, ...more] = part.split('/');
    const version = isIP(address);
    const most = version === 6 ? 128 : 32;
    const length = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
    if (version === 0 || more.length > 0 || !(length <= most)) {
      return {
        problem: `of which ${JSON.stringify(part)} is neither an address nor a network; write it like 127.0.0.1 or 10.0.0.0/8, several are separated by commas`,
      };
    }
    list.addSubnet(address, length, version === 6 ? 'ipv6' : 'ipv4');
  }
  return { ok: list };
}

function isAmong(list: BlockList, address: string): boolean {
  const version = isIP(address);
  return version !== 0 && list.check(address, version === 6 ? 'ipv6' : 'ipv4');
}

function unmapped(address: string): string {
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(address) ? address.slice(7) : address;
}

function withoutZone(address: string): string {
  const at = address.indexOf('%');
  return at < 0 ? address : address.slice(0, at);
}

function withoutPort(hop: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(hop);
  if (bracketed) return bracketed[1]!;
  return /^\d+\.\d+\.\d+\.\d+:\d+$/.test(hop) ? hop.slice(0, hop.lastIndexOf(':')) : hop;
}

/** The first four groups of an IPv6 address, each without leading zeros: `2001:db8:0:1`. */
function networkOf(address: string): string {
  const [head = '', tail] = address.toLowerCase().split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length - (address.includes('.') ? 1 : 0));
  return [...left, ...Array.from({ length: zeros }, () => '0'), ...right]
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':');
}

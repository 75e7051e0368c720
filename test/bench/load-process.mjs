// Asks one address over and over on so many connections for so long, and prints how often it was answered and how long that took.
// Raw sockets: whatever the generator itself takes would be taken from what it measures.
// argv: url, connections, milliseconds
import net from 'node:net';

const [, , address, connections, milliseconds] = process.argv;
const url = new URL(address);
const request = `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: keep-alive\r\n\r\n`;
const END = Buffer.from('\r\n\r\n');
const times = [];
let bytes = 0;
let failures = 0;
let over = false;

function connect() {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: url.hostname, port: Number(url.port), noDelay: true });
    let head = null;
    let left = -1;
    let begun = 0;
    const ask = () => {
      begun = performance.now();
      left = -1;
      head = null;
      socket.write(request);
    };
    socket.on('connect', ask);
    socket.on('error', reject);
    socket.on('close', resolve);
    socket.on('data', (data) => {
      let body = data;
      if (left < 0) {
        head = head === null ? data : Buffer.concat([head, data]);
        const end = head.indexOf(END);
        if (end < 0) return;
        const text = head.toString('latin1', 0, end);
        if (!text.startsWith('HTTP/1.1 200')) failures++;
        left = Number(/content-length: (\d+)/i.exec(text)[1]);
        body = head.subarray(end + END.length);
      }
      bytes += body.length;
      left -= body.length;
      if (left > 0) return;
      times.push(performance.now() - begun);
      if (over) socket.destroy();
      else ask();
    });
  });
}

const begun = performance.now();
setTimeout(() => {
  over = true;
}, Number(milliseconds));
await Promise.all(Array.from({ length: Number(connections) }, connect));
const seconds = (performance.now() - begun) / 1000;
times.sort((a, b) => a - b);
const at = (share) => times[Math.min(times.length - 1, Math.floor(times.length * share))];
console.log(
  JSON.stringify({
    perSecond: times.length / seconds,
    p50: at(0.5),
    p99: at(0.99),
    answers: times.length,
    bytes,
    failures,
  }),
);

// The chat in a browser: one WebSocket. When it ends (the server may have been undeployed, or replaced) the
// page opens it again, and enters the same room under the same name.

const find = (id) => document.getElementById(id);
const againMs = 1000;
/** Older lines leave the page. */
const maxLines = 500;

let socket;
/** `{ enter, name }` as it was sent last, until the page is left. */
let entered;

function connect() {
  const url = new URL('.', location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  socket = new WebSocket(url);
  socket.onmessage = ({ data }) => receive(JSON.parse(data));
  socket.onclose = () => {
    find('state').textContent = 'no connection, trying again …';
    allowTalk(false);
    setTimeout(connect, againMs);
  };
}

function receive({ hello, entered: room, names, said, error }) {
  if (error !== undefined) find('error').textContent = error;
  if (hello !== undefined) greet(hello);
  if (room !== undefined) {
    addLine('note', `You are in the ${room}.`);
    allowTalk(true);
  }
  if (names !== undefined) find('names').replaceChildren(...names.map((name) => item(name)));
  if (said !== undefined) addLine('', ` ${said.text}`, said.name);
}

function greet({ rooms, instance, pid }) {
  find('state').textContent = `connected to instance ${instance}, process ${pid}`;
  const { value } = find('room');
  find('room').replaceChildren(...rooms.map((room) => new Option(room)));
  if (rooms.includes(value)) find('room').value = value;
  if (entered !== undefined) socket.send(JSON.stringify(entered));
}

function allowTalk(isAllowed) {
  find('text').disabled = !isAllowed;
  find('send').disabled = !isAllowed;
  find('text').placeholder = isAllowed ? 'Say something' : 'Enter a room first';
  if (isAllowed) find('text').focus();
}

function item(text) {
  const element = document.createElement('li');
  element.textContent = text;
  return element;
}

function addLine(kind, text, name) {
  const log = find('log');
  const isAtEnd = log.scrollTop + log.clientHeight > log.scrollHeight - 20;
  const line = item(text);
  line.className = kind;
  if (name !== undefined) {
    const speaker = document.createElement('b');
    speaker.textContent = name;
    line.prepend(speaker);
  }
  log.append(line);
  if (log.childElementCount > maxLines) log.firstElementChild.remove();
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

find('door').onsubmit = (event) => {
  event.preventDefault();
  find('error').textContent = '';
  entered = { enter: find('room').value, name: find('name').value };
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(entered));
};

find('mouth').onsubmit = (event) => {
  event.preventDefault();
  find('error').textContent = '';
  if (socket.readyState !== WebSocket.OPEN) return;
  socket.send(JSON.stringify({ say: find('text').value }));
  find('text').value = '';
};

connect();

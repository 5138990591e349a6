-- For wrk: of a hundred requests so many are for a CGI program, evenly spread, the others for a file.
local share, sum = 0, 0

function init(args)
  share = tonumber(args[1])
end

function request()
  sum = sum + share
  if sum >= 100 then
    sum = sum - 100
    return wrk.format("GET", "/cgi-bin/hello")
  end
  return wrk.format("GET", "/page.html")
end

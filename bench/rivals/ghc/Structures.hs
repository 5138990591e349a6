{-# LANGUAGE BangPatterns #-}
-- The sets of examples/stm-structures in Haskell, each operation a transaction of GHC's STM, for the case `stm`.
--
--   structures NAME NUMBERS WARM_MS WINDOW_MS +RTS -N2
--
-- Prints the operations per second of all capabilities, each with a thread of its own. The keys are checked at the
-- end: sorted, and none twice.
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Monad
import Data.Bits (shiftL, shiftR, xor, (.&.))
import Data.Word
import GHC.Clock (getMonotonicTimeNSec)
import System.Environment
import System.Exit

data Set = Set
  { has :: Int -> STM Bool
  , add :: Int -> STM Bool
  , remove :: Int -> STM Bool
  , keys :: STM [Int]
  }

main :: IO ()
main = do
  [name, numbers, warm, window] <- getArgs
  let count = read numbers
  set <- atomically (make name)
  forM_ [count - 1, count - 2 .. 0] $ \at -> atomically (add set (2 * at))
  threads <- getNumCapabilities
  results <- forM [0 .. threads - 1] $ \thread -> do
    result <- newEmptyMVar
    _ <- forkOn thread $ do
      seed <- fst <$> repeatFor (read warm) set count (fromIntegral thread + 88172645463325252)
      (_, turns) <- repeatFor (read window) set count seed
      putMVar result turns
    return result
  turns <- sum <$> mapM takeMVar results
  found <- atomically (keys set)
  unless (and (zipWith (<) found (drop 1 found))) (die "keys are out of order")
  print (fromIntegral turns * 1000 / (read window :: Double))

make :: String -> STM Set
make "list" = listSet <$> newTVar End
make "tree" = treeSet <$> newTVar Empty
make name = error ("no structure is called " ++ name)

-- | Operates until the time is over: the next random number, and how many operations there were.
repeatFor :: Int -> Set -> Int -> Word64 -> IO (Word64, Int)
repeatFor ms set count seed = do
  start <- getMonotonicTimeNSec
  let end = start + fromIntegral ms * 1000000
      go !random !turns = do
        now <- getMonotonicTimeNSec
        if now >= end then return (random, turns) else do
          let random' = next random
              key = fromIntegral ((random' `shiftR` 8) `mod` fromIntegral (2 * count))
              what = random' .&. 3
          _ <- atomically $ if what < 2 then has set key else if what == 2 then add set key else remove set key
          go random' (turns + 1)
  go seed (0 :: Int)

-- | Xorshift (Marsaglia 2003).
next :: Word64 -> Word64
next x0 = x2 `xor` (x2 `shiftL` 17)
  where
    x1 = x0 `xor` (x0 `shiftL` 13)
    x2 = x1 `xor` (x1 `shiftR` 7)

-- A sorted linked list, as list.js.

data Link = End | Link !Int !(TVar Link)

listSet :: TVar Link -> Set
listSet root = Set {has = has', add = add', remove = remove', keys = keys' root}
  where
    find key at = do
      link <- readTVar at
      case link of
        Link other after | other < key -> find key after
        _ -> return (at, link)
    has' key = do
      (_, link) <- find key root
      return $ case link of
        Link other _ -> other == key
        End -> False
    add' key = do
      (at, link) <- find key root
      case link of
        Link other _ | other == key -> return False
        _ -> do
          after <- newTVar link
          writeTVar at (Link key after)
          return True
    remove' key = do
      (at, link) <- find key root
      case link of
        Link other after | other == key -> readTVar after >>= writeTVar at >> return True
        _ -> return False
    keys' at = do
      link <- readTVar at
      case link of
        End -> return []
        Link key after -> (key :) <$> keys' after

-- A red-black tree, as tree.js.

type Place = TVar Node

data Node = Empty | Node { key :: !Int, red :: !Bool, left :: !Place, right :: !Place }

data Side = L | R deriving (Eq)

other :: Side -> Side
other L = R
other R = L

child :: Side -> Node -> Place
child L = left
child R = right

withChild :: Side -> Place -> Node -> Node
withChild L place node = node {left = place}
withChild R place node = node {right = place}

isEmpty :: Node -> Bool
isEmpty Empty = True
isEmpty _ = False

isRed :: Place -> STM Bool
isRed place = do
  node <- readTVar place
  return (not (isEmpty node) && red node)

paint :: Bool -> Place -> STM ()
paint color place = do
  node <- readTVar place
  unless (isEmpty node || red node == color) (writeTVar place node {red = color})

-- | Moves the node of a place down; its child on `side` comes up. Returns the place where it is now.
rotate :: Place -> Side -> STM Place
rotate place side = do
  node <- readTVar place
  let below = child side node
  up <- readTVar below
  writeTVar below (withChild side (child (other side) up) node)
  writeTVar place (withChild (other side) below up)
  return below

sideOf :: Place -> Place -> STM Side
sideOf place parent = do
  node <- readTVar parent
  return (if left node == place then L else R)

-- | The places on the way to a key, the last one first: it has the key, or is empty.
pathTo :: Place -> Int -> STM [Place]
pathTo root wanted = go root []
  where
    go place above = do
      node <- readTVar place
      if isEmpty node || key node == wanted
        then return (place : above)
        else go (if wanted < key node then left node else right node) (place : above)

treeSet :: Place -> Set
treeSet root = Set {has = has', add = add', remove = remove', keys = keys' root}
  where
    has' wanted = do
      path <- pathTo root wanted
      not . isEmpty <$> readTVar (head path)
    add' wanted = do
      path <- pathTo root wanted
      node <- readTVar (head path)
      if not (isEmpty node) then return False else do
        made <- Node wanted True <$> newTVar Empty <*> newTVar Empty
        writeTVar (head path) made
        repairRed path
        paint False root
        return True
    remove' wanted = do
      path <- pathTo root wanted
      let found = head path
      node <- readTVar found
      if isEmpty node then return False else do
        below <- (&&) <$> isFilled (left node) <*> isFilled (right node)
        if not below then takeOut path else do
          longer <- leftmost (right node : path)
          successor <- readTVar (head longer)
          writeTVar found node {key = key successor}
          takeOut longer
        return True
    keys' place = do
      node <- readTVar place
      if isEmpty node then return [] else do
        before <- keys' (left node)
        after <- keys' (right node)
        return (before ++ key node : after)

isFilled :: Place -> STM Bool
isFilled place = not . isEmpty <$> readTVar place

leftmost :: [Place] -> STM [Place]
leftmost path = do
  node <- readTVar (head path)
  more <- isFilled (left node)
  if more then leftmost (left node : path) else return path

-- | The node at the end of the path is red, and its parent may be, too.
repairRed :: [Place] -> STM ()
repairRed (place : parent : grandparent : above) = do
  isBroken <- isRed parent
  when isBroken $ do
    side <- sideOf parent grandparent
    uncle <- child (other side) <$> readTVar grandparent
    isUncleRed <- isRed uncle
    if isUncleRed
      then do
        paint False parent
        paint False uncle
        paint True grandparent
        repairRed (grandparent : above)
      else do
        own <- sideOf place parent
        when (own /= side) (void (rotate parent (other side)))
        paint True grandparent
        paint False parent
        void (rotate grandparent side)
repairRed _ = return ()

-- | Takes out the node at the end of the path, which has one child at most.
takeOut :: [Place] -> STM ()
takeOut path = do
  let place = head path
  node <- readTVar place
  onLeft <- readTVar (left node)
  onRight <- readTVar (right node)
  writeTVar place (if isEmpty onLeft then onRight else onLeft)
  unless (red node) $ do
    isNowRed <- isRed place
    if isNowRed then paint False place else repairBlack path

-- | The place at the end of the path has one black node too few below it.
repairBlack :: [Place] -> STM ()
repairBlack (place : path@(parent : _)) = do
  side <- sideOf place parent
  let far = other side
  first <- child far <$> readTVar parent
  isFirstRed <- isRed first
  upper <- if not isFirstRed then return parent else do
    paint False first
    paint True parent
    rotate parent far
  sibling <- child far <$> readTVar upper
  near <- child side <$> readTVar sibling
  isNearRed <- isRed near
  isFarRed <- readTVar sibling >>= isRed . child far
  if not isNearRed && not isFarRed
    then do
      paint True sibling
      isUpperRed <- isRed upper
      if isUpperRed then paint False upper else repairBlack path
    else do
      unless isFarRed $ do
        paint False near
        paint True sibling
        void (rotate sibling side)
      color <- isRed upper
      readTVar sibling >>= paint False . child far
      paint color sibling
      paint False upper
      void (rotate upper far)
repairBlack _ = return ()
